package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// runServer is a NATS server until ctx ends. Its data goes into the folder that
// is its only argument.
func runServer(ctx context.Context, args []string) error {
	srv, err := startServer(&server.Options{JetStream: true, StoreDir: args[0], MaxPayload: 8 << 20})
	if err != nil {
		return err
	}
	ready(srv.ClientURL())
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// floorPrefix begins the subjects of the floor; the model is their last token.
const floorPrefix = "floor."

// floor passes messages on. That is all.
type floor struct {
	nc       *nats.Conn
	endpoint *url.URL
	client   http.Client
	buffers  sync.Pool // of *bytes.Buffer
}

func runFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	natsURL := flags.String("nats", "", "NATS server; empty starts one within")
	upstream := flags.String("provider", "", "base URL of the provider")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *natsURL == "" {
		srv, err := startServer(&server.Options{})
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		*natsURL = srv.ClientURL()
	}
	endpoint, err := url.Parse(*upstream + "/v1/chat/completions")
	if err != nil {
		return err
	}
	nc, err := nats.Connect(*natsURL)
	if err != nil {
		return err
	}
	defer nc.Close()
	f := &floor{nc: nc, endpoint: endpoint, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}, client: http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 4096, DisableCompression: true, WriteBufferSize: 16 << 10, ReadBufferSize: 16 << 10,
	}}}
	sub, err := nc.QueueSubscribe(floorPrefix+"*", "floor", func(m *nats.Msg) {
		go func() {
			if err := f.serve(m); err != nil {
				log.Print("floor: ", err)
			}
		}()
	})
	if err != nil {
		return err
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), nc.Flush()); err != nil {
		return err
	}
	ready(*natsURL)
	<-ctx.Done()
	return nil
}

// serve answers one message: with one, or with one for each event and an empty
// one at the end.
func (f *floor) serve(m *nats.Msg) error {
	body := f.buffers.Get().(*bytes.Buffer)
	defer f.buffers.Put(body)
	body.Reset()
	fmt.Fprintf(body, `{"model":"%s",`, strings.TrimPrefix(m.Subject, floorPrefix))
	body.Write(m.Data[1:])
	resp, err := f.client.Do(&http.Request{
		Method: http.MethodPost, URL: f.endpoint, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body.Bytes())), ContentLength: int64(body.Len()),
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if resp.ContentLength < 0 {
		return f.events(m.Reply, resp.Body)
	}
	answer := f.buffers.Get().(*bytes.Buffer)
	defer f.buffers.Put(answer)
	answer.Reset()
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return err
	}
	return f.nc.Publish(m.Reply, answer.Bytes())
}

func (f *floor) events(reply string, body io.Reader) error {
	r := bufio.NewReaderSize(body, 8<<10)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return f.nc.Publish(reply, nil)
		}
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && data[0] == '{' {
			if err := f.nc.Publish(reply, bytes.TrimSuffix(data, []byte{'\n'})); err != nil {
				return err
			}
		}
	}
}

// startServer starts a NATS server on any port.
func startServer(o *server.Options) (*server.Server, error) {
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	srv, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server did not start")
	}
	return srv, nil
}
