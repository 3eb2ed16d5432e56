package scope_test

import (
	"context"
	"fmt"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/scope"
)

type query struct{ text string }

// run finds its memory in the context.
func run(ctx context.Context, text string) {
	s := scope.From(ctx).Child("query")
	defer s.End()
	s.Defer(func() { fmt.Println("closed:", text) })
	q := arena.New[query](s.Arena())
	q.text = text
	fmt.Println("ran:", q.text)
}

func Example() {
	transaction := scope.New("transaction")
	transaction.Defer(func() { fmt.Println("committed") })
	ctx := scope.NewContext(context.Background(), transaction)
	run(ctx, "select 1")
	run(ctx, "select 2")
	transaction.End()
	// Output:
	// ran: select 1
	// closed: select 1
	// ran: select 2
	// closed: select 2
	// committed
}
