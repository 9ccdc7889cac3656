package server

import (
	"context"
	"net"
	"sync"
)

// reserve is how many connections beyond the limit are let in, for health checks and to tell the others why.
const reserve = 16

// cappedListener accepts at most limit+reserve connections; one beyond that waits in the system's queue.
type cappedListener struct {
	net.Listener
	slots  chan struct{}
	limit  int
	closed chan struct{}
	once   sync.Once
}

func newCappedListener(l net.Listener, limit int) *cappedListener {
	return &cappedListener{Listener: l, slots: make(chan struct{}, limit+reserve), limit: limit, closed: make(chan struct{})}
}

func (l *cappedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &cappedConn{extra: len(l.slots) > l.limit, release: sync.OnceFunc(func() { <-l.slots })}
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.TCPConn = tcp
		return c, nil
	}
	c.release()
	return conn, nil // no listener of ours gives another kind
}

func (l *cappedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// cappedConn gives its slot back when it is closed. It is a TCP connection to all who look, so that files are still sent
// without copying.
type cappedConn struct {
	*net.TCPConn
	extra   bool // it came when the limit was reached
	release func()
}

func (c *cappedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}

type extraKey struct{}

// markExtra notes in the context of a connection that it is one of the reserve.
func markExtra(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secure.NetConn()
	}
	if capped, ok := c.(*cappedConn); ok && capped.extra {
		return context.WithValue(ctx, extraKey{}, true)
	}
	return ctx
}

func isExtra(ctx context.Context) bool { return ctx.Value(extraKey{}) != nil }
