// Proxy is the least that an HTTP gateway can be: it passes requests on to the
// address it is given, and prints its own. Benchmarks measure against it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	target, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// A body that is passed on while it comes now and then has the connection
			// closed under the answer.
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
	}
	panic(http.Serve(l, proxy))
}
