package http1

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Endpoint is where calls go and what each of them says before its body. It does
// not change.
type Endpoint struct {
	host host
	head []byte // up to the number of the Content-Length
}

// host is a place to connect to.
type host struct {
	addr string // name and port
	name string
	tls  bool
}

// NewEndpoint prepares calls to a URL, which carry these headers. The URL must be
// http or https and name a host.
func NewEndpoint(u *url.URL, headers http.Header) (*Endpoint, error) {
	if u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errNoPlace
	}
	const body, length = "x", "Content-Length: 1\r\n"
	req := &http.Request{Method: http.MethodPost, URL: u, Header: headers, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	var whole bytes.Buffer
	if err := req.Write(&whole); err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(whole.Bytes(), []byte("\r\n"+body))
	head = append(bytes.Replace(head, []byte(length), nil, 1), strings.TrimSuffix(length, "1\r\n")...)
	secure := u.Scheme == "https"
	port := "80"
	if secure {
		port = "443"
	}
	return &Endpoint{head: head, host: host{addr: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), name: u.Hostname(), tls: secure}}, nil
}
