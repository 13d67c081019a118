module tunnelbench

go 1.24
