package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// runMock serves Chat Completions until ctx ends. net/http reads the requests;
// the answers are made once and written as they are, since the provider runs on
// the same cores as what is measured.
func runMock(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	ready("http://" + l.Addr().String())
	m := &mock{answers: map[question]*canned{}}
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer conn.Close()
			m.serve(conn)
		}()
	}
}

type mock struct {
	mu      sync.Mutex
	answers map[question]*canned
}

// question is all of a request that an answer depends on.
type question struct {
	model         string
	stream, usage bool
}

// canned is an answer as it goes over the wire: one write, or one for each
// batch of events.
type canned struct {
	behaviour
	writes [][]byte
}

func (m *mock) serve(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	var body bytes.Buffer
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body.Reset()
		if _, err := body.ReadFrom(req.Body); err != nil {
			return
		}
		answer, err := m.answer(body.Bytes())
		if err != nil {
			log.Print(err)
			return
		}
		if answer.play(conn) != nil || req.Close {
			return
		}
	}
}

func (c *canned) play(w io.Writer) error {
	time.Sleep(c.first)
	for i, data := range c.writes {
		if i > 0 {
			time.Sleep(c.gap)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

var modelField = regexp.MustCompile(`"model" ?: ?"([^"]*)"`)

// ask reads what matters of a body. The model stands at one of its ends, and
// the prompt between them is not looked at.
func ask(body []byte) question {
	const near = 512
	ends := body
	if len(body) > 2*near {
		ends = append(bytes.Clone(body[:near]), body[len(body)-near:]...)
	}
	q := question{stream: bytes.Contains(ends, []byte(`"stream":true`)), usage: bytes.Contains(ends, []byte(`"include_usage":true`))}
	if found := modelField.FindSubmatch(ends); found != nil {
		q.model = string(found[1])
	}
	return q
}

func (m *mock) answer(body []byte) (*canned, error) {
	q := ask(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.answers[q]; c != nil {
		return c, nil
	}
	b, err := parseBehaviour(q.model)
	if err != nil {
		return nil, err
	}
	c := &canned{behaviour: b}
	if q.stream {
		c.writes = chunked(b.events(q.model, q.usage), b.write)
	} else {
		body := b.whole(q.model)
		head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: req_bench\r\n\r\n", len(body))
		c.writes = [][]byte{append(head, body...)}
	}
	m.answers[q] = c
	return c, nil
}

// chunked puts n events into each chunk of an HTTP body.
func chunked(events []string, n int) [][]byte {
	var writes [][]byte
	for i := 0; i < len(events); i += n {
		var chunk bytes.Buffer
		for _, e := range events[i:min(i+n, len(events))] {
			chunk.WriteString(e)
		}
		writes = append(writes, fmt.Appendf(nil, "%x\r\n%s\r\n", chunk.Len(), chunk.Bytes()))
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	writes[0] = append([]byte(head), writes[0]...)
	writes[len(writes)-1] = append(writes[len(writes)-1], "0\r\n\r\n"...)
	return writes
}
