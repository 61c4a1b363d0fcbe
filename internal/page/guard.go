package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
)

// secure sets what a browser is told of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// rights of whoever asks.
type rights struct {
	look, act bool
	wrong     bool // a key was given, and it is not the one
}

func (p *Page) rights(r *http.Request) rights {
	scheme, key, given := strings.Cut(r.Header.Get("Authorization"), " ")
	if given && strings.EqualFold(scheme, "bearer") {
		sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
		ok := p.cfg.Key != "" && subtle.ConstantTimeCompare(sum[:], p.key[:]) == 1
		return rights{look: ok, act: ok, wrong: !ok}
	}
	return rights{look: p.cfg.Local && loopbackHost(r.Host) && !forwarded(r.Header)}
}

// forwarded reports whether a proxy on this machine says that it passes the
// request on. Many name themselves as the host, so that only this tells.
func forwarded(h http.Header) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}, func(name string) bool { return h.Get(name) != "" })
}

// loopbackHost demands a name of this machine.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// look lets those pass who may see the fleet, on this page and no other.
func (p *Page) look(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		may := p.rights(r)
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case site != "" && site != "same-origin" && site != "none":
			refuse(w, http.StatusForbidden, "pages of another origin may not look")
		case may.look:
			next(w, r)
		default:
			p.unauthorized(w, r, may)
		}
	}
}

// act lets those pass who have the admin key.
func (p *Page) act(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		may := p.rights(r)
		switch {
		case p.origins.Check(r) != nil:
			refuse(w, http.StatusForbidden, "pages of another origin may not act")
		case p.cfg.Key == "":
			refuse(w, http.StatusForbidden, "this page is read-only: set LLMBUS_ADMIN_KEY or LLMBUS_ADMIN_KEY_FILE where it is served")
		case may.act:
			next(w, r)
		default:
			p.unauthorized(w, r, may)
		}
	}
}

func (p *Page) unauthorized(w http.ResponseWriter, r *http.Request, may rights) {
	if may.wrong {
		p.log.Warn("a wrong admin key was given", "from", r.RemoteAddr, "path", r.URL.Path)
		refuse(w, http.StatusUnauthorized, "this is not the admin key")
		return
	}
	if p.cfg.Key == "" {
		refuse(w, http.StatusForbidden, "only this machine may look, by the name localhost or 127.0.0.1; set LLMBUS_ADMIN_KEY where the page is served to look from elsewhere")
		return
	}
	refuse(w, http.StatusUnauthorized, "the admin key is needed: Authorization: Bearer <key>")
}

// refuse answers with an error that the page shows.
func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error": message})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only when the client is gone
}
