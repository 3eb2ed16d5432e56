package pool_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/tenure-alloc/tenure/go/pool"
)

var copyBuffers = pool.NewBytes(pool.BytesConfig{Name: "proxy"})

// Copies one direction of a connection through a buffer of the pool.
func forward(to io.Writer, from io.Reader) (int64, error) {
	b := copyBuffers.GetN(32 << 10)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, b.B)
}

// Buffers in a proxy: many connections share few buffers, and those of a rush hour are given back.
func ExampleBytes() {
	for i := range 3 {
		client, proxy := net.Pipe()
		go func() {
			fmt.Fprintf(client, "request %d", i)
			client.Close()
		}()
		var upstream strings.Builder
		n, err := forward(&upstream, proxy)
		fmt.Println(n, err, upstream.String())
	}
	s := copyBuffers.Stats()
	fmt.Println("in use:", s.InUse, "built:", s.Misses)
	// Output:
	// 9 <nil> request 0
	// 9 <nil> request 1
	// 9 <nil> request 2
	// in use: 0 built: 1
}

// Encoders with a state that is dear to build. A Local serves the loop of one goroutine.
func ExamplePool_Local() {
	encoders := pool.New(pool.Config[*bytes.Buffer]{
		New:    func() *bytes.Buffer { return bytes.NewBuffer(make([]byte, 0, 4096)) },
		Reset:  (*bytes.Buffer).Reset,
		SizeOf: func(b *bytes.Buffer) int64 { return int64(b.Cap()) },
	})
	defer encoders.Close()
	local := encoders.Local()
	defer local.Flush()
	for i := range 3 {
		b := local.Get()
		fmt.Fprintf(b, "line %d", i)
		fmt.Println(b)
		local.Put(b)
	}
	// Output:
	// line 0
	// line 1
	// line 2
}
