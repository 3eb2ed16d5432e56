module github.com/tenure-alloc/tenure/examples/go/cgo

go 1.24.0

require github.com/tenure-alloc/tenure/go v0.0.0

require golang.org/x/sys v0.36.0 // indirect

replace github.com/tenure-alloc/tenure/go => ../../../go
