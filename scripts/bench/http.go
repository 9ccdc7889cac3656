package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// link is a connection to a server, for one request at a time.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	head string // what every request says besides its first line
}

// patience is how long a request may take.
const patience = 2 * time.Minute

func dial(s *server) (*link, error) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return nil, err
	}
	head := "Host: " + s.address + "\r\nAccept: " + manifestType + "\r\n"
	if s.user != "" {
		head += "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(s.user+":"+s.secret)) + "\r\n"
	}
	return &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), head: head}, nil
}

func (l *link) Close() error { return l.conn.Close() }

// answer is what came back. body is only kept where it was asked for.
type answer struct {
	status   int
	location string
	next     string // of the Link header
	size     int64  // of the body
	body     []byte
	chunked  bool
}

// do sends a request and reads its answer whole, which must have the status. The body of the answer is kept with keep.
func (l *link) do(method, path, mediaType string, body []byte, want int, keep bool) (answer, error) {
	l.conn.SetDeadline(time.Now().Add(patience))
	head := method + " " + path + " HTTP/1.1\r\n" + l.head
	if method != "GET" && method != "HEAD" {
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	if mediaType != "" {
		head += "Content-Type: " + mediaType + "\r\n"
	}
	out := net.Buffers{[]byte(head + "\r\n")}
	if len(body) > 0 {
		out = append(out, body)
	}
	if _, err := out.WriteTo(l.conn); err != nil {
		return answer{}, err
	}
	a, err := l.readHead()
	if err != nil {
		return a, err
	}
	if err := l.readBody(&a, keep || a.status != want); err != nil {
		return a, err
	}
	if a.status != want {
		return a, fmt.Errorf("%s %s: status %d, want %d: %.300s", method, path, a.status, want, a.body)
	}
	return a, nil
}

// readHead reads the status and the headers that matter.
func (l *link) readHead() (a answer, err error) {
	for first := true; ; first = false {
		line, err := l.in.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first && len(line) > 12:
			if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return a, fmt.Errorf("%.100q is no status line", line)
			}
		case first:
			return a, fmt.Errorf("%.100q is no status line", line)
		case len(line) == 0:
			return a, nil
		default:
			a.header(line)
		}
	}
}

func (a *answer) header(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		a.size, _ = strconv.ParseInt(string(value), 10, 64)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		a.chunked = bytes.EqualFold(value, []byte("chunked"))
	case bytes.EqualFold(name, []byte("Location")):
		a.location = string(value)
	case bytes.EqualFold(name, []byte("Link")):
		target, _, _ := strings.Cut(strings.TrimPrefix(string(value), "<"), ">")
		a.next = target
	}
}

// readBody reads the body to its end.
func (l *link) readBody(a *answer, keep bool) (err error) {
	var kept bytes.Buffer
	to := io.Discard
	if keep {
		to = &kept
	}
	switch {
	case a.chunked:
		if a.size, err = io.Copy(to, httputil.NewChunkedReader(l.in)); err == nil {
			_, err = l.in.Discard(len("\r\n"))
		}
	case keep || a.size < int64(l.in.Size()):
		_, err = io.CopyN(to, l.in, a.size)
	default:
		err = l.drain(a.size)
	}
	a.body = kept.Bytes()
	return err
}

// drain reads a large body past the buffer, as the fastest client would.
func (l *link) drain(n int64) error {
	here := min(int64(l.in.Buffered()), n)
	if _, err := l.in.Discard(int(here)); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for n -= here; n > 0; {
		got, err := l.conn.Read(buf[:min(n, int64(len(buf)))])
		if n -= int64(got); err != nil && n > 0 {
			return err
		}
	}
	return nil
}
