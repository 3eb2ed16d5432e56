module github.com/tenure-alloc/tenure/go

go 1.24.0

require golang.org/x/sys v0.36.0
