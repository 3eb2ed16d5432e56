module github.com/tenure-alloc/tenure/go

go 1.24.0

require (
	github.com/anishathalye/porcupine v1.0.3
	github.com/prometheus/client_model v0.6.1
	github.com/prometheus/common v0.62.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.36.0
)

require (
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	google.golang.org/protobuf v1.36.1 // indirect
)
