package gateway

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// served is a handler that knows whose request it is.
type served func(w http.ResponseWriter, r *http.Request, tenant string)

// only refuses other methods.
func (s *Server) only(method string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
			next(w, r)
			return
		}
		w.Header().Set("Allow", method)
		problem{status: http.StatusMethodNotAllowed, kind: kindInvalid, code: "method_not_allowed",
			message: fmt.Sprintf("%s takes %s only", r.URL.Path, method)}.write(w)
	}
}

// known finds whose key it is.
func (s *Server) known(next served) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tenant, err := s.tenant(r)
		if err != nil {
			err.write(w)
			return
		}
		next(w, r, tenant)
	}
}

// admitted bounds what is in flight.
func (s *Server) admitted(next served) http.HandlerFunc {
	return s.known(func(w http.ResponseWriter, r *http.Request, tenant string) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			next(w, r, tenant)
		default:
			problem{status: http.StatusTooManyRequests, kind: kindOverloaded, code: "busy", retry: true, afterMS: 1000,
				message: "too many requests are in flight here; come back in a second"}.write(w)
		}
	})
}

// tenant finds whose request it is. Pages of other origins are kept out, since a
// browser sends what they ask for to any address of the machine it runs on.
func (s *Server) tenant(r *http.Request) (string, *problem) {
	if err := s.origins.Check(r); err != nil {
		return "", &problem{status: http.StatusForbidden, kind: kindInvalid, code: "cross_origin", message: "requests of pages of another origin are refused"}
	}
	if s.cfg.Keys == nil {
		if forwarded(r.Header) {
			return "", &problem{status: http.StatusForbidden, kind: kindInvalid, code: "forwarded",
				message: "without API keys only this machine is served, and a proxy says that somebody else asks"}
		}
		if !loopbackHost(r.Host) {
			return "", &problem{status: http.StatusForbidden, kind: kindInvalid, code: "unknown_host",
				message: "without API keys the Host must be localhost or a loopback address"}
		}
		return "", nil
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || key == "" {
		return "", unauthorized("an API key is needed: Authorization: Bearer <key>")
	}
	tenant, ok := s.cfg.Keys.Tenant(strings.TrimSpace(key))
	if !ok {
		return "", unauthorized("the API key is not known")
	}
	return tenant, nil
}

func unauthorized(message string) *problem {
	return &problem{status: http.StatusUnauthorized, kind: kindInvalid, code: "invalid_api_key", message: message}
}

// forwarded reports whether a proxy on this machine says that it passes the
// request on. Many name themselves as the host, so that only this tells.
func forwarded(h http.Header) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}, func(name string) bool { return h.Get(name) != "" })
}

// loopbackHost demands a name of this machine, since a name that an attacker
// made resolve to it is one too, for a browser.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// mayServe refuses to serve others without keys.
func (s *Server) mayServe(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if s.cfg.Keys != nil || !ok || tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %s can be reached from other machines; name API keys, or listen on a loopback address", ErrNoKeys, addr)
}
