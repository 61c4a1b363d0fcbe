package config

import (
	"net"
	"net/url"
	"strings"
)

// refuseClearKey refuses to send a key in the clear over a network, unless the
// provider says that its network is trusted. Without a key plain http is allowed:
// models of one's own often have no other.
func refuseClearKey(s *section, p *Provider, base string) {
	trusted := false
	s.flag("allow_http", &trusted)
	u, err := url.Parse(base)
	clear := err == nil && u.Scheme == "http" && (p.KeyEnv != "" || p.KeyFile != "") && !loopback(u.Hostname())
	switch {
	case clear && !trusted:
		s.problem("base_url", "would send the key in the clear; use https, or set allow_http: true if the network is trusted")
	case trusted && !clear:
		s.problem("allow_http", "has no effect without a key and a base_url of http:// to another machine; remove it")
	}
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
