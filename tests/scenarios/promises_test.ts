import { BULK, definePromises } from "../support/promise_matrix.ts";

definePromises((sentence) => !BULK.test(sentence));
