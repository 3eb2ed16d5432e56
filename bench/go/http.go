package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/pool"
)

const (
	connections       = 2
	requestsInARepeat = 100 // on each connection
)

func httpWorkloads() []workload {
	ops := float64(connections * requestsInARepeat)
	return []workload{{name: "go-http-4k", ops: ops, repeats: 100, rounds: 31,
		subjects: []subject{
			{"tenure", func() work { return serve(bytesHandler()) }},
			{"tenure-arena", func() work { return serve(arenaHandler()) }},
			{"syncpool", func() work { return serve(boxedHandler()) }},
			{"new", func() work { return serve(heapHandler) }}}}}
}

// The answer: as many bytes as a buffer has.
func respond(w http.ResponseWriter, b []byte) {
	for i := range b {
		b[i] = byte('a' + i%16)
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.Write(b)
}

func bytesHandler() http.HandlerFunc {
	p := newBytes()
	return func(w http.ResponseWriter, _ *http.Request) {
		b := p.GetN(bufferSize)
		respond(w, b.B)
		p.Put(b)
	}
}

func arenaHandler() http.HandlerFunc {
	p := pool.New(pool.Config[*arena.Arena]{
		New:     func() *arena.Arena { return arena.NewArena(arena.Fast) },
		Reset:   (*arena.Arena).Reset,
		Destroy: (*arena.Arena).Free,
	})
	return func(w http.ResponseWriter, _ *http.Request) {
		a := p.Get()
		respond(w, arena.New[buffer](a)[:])
		p.Put(a)
	}
}

func boxedHandler() http.HandlerFunc {
	p := newBoxed()
	return func(w http.ResponseWriter, _ *http.Request) {
		b := p.Get().([]byte)
		respond(w, b)
		p.Put(b)
	}
}

func heapHandler(w http.ResponseWriter, _ *http.Request) {
	respond(w, make([]byte, bufferSize))
}

// Serves on loopback, and asks on several connections at once. Each request is timed by itself.
func serve(handler http.HandlerFunc) work {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, handler)
	var clients [connections]*client
	for i := range clients {
		clients[i] = dial(listener.Addr().String())
	}
	return func(repeats int, h *histogram) {
		var asking sync.WaitGroup
		for _, c := range clients {
			asking.Add(1)
			go func() {
				defer asking.Done()
				for range repeats {
					for i := range c.took {
						c.took[i] = c.ask()
					}
					if h != nil {
						recordAll(h, c.took[:])
					}
				}
			}()
		}
		asking.Wait()
	}
}

// A client that costs less than the server.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
	took   [requestsInARepeat]time.Duration
}

func dial(address string) *client {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	return &client{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}
}

var request = []byte("GET / HTTP/1.1\r\nHost: bench\r\n\r\n")

func (c *client) ask() time.Duration {
	start := time.Now()
	if _, err := c.conn.Write(request); err != nil {
		panic(err)
	}
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			panic(err)
		}
		if len(line) == 2 {
			break
		}
	}
	if n, err := c.reader.Discard(bufferSize); n != bufferSize {
		panic(fmt.Sprint(err, io.ErrUnexpectedEOF))
	}
	return time.Since(start)
}
