import { BULK, definePromises } from "../support/rigs/promise_matrix.ts";

definePromises((sentence) => !BULK.test(sentence));
