package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// ParseBase checks a provider's base URL. It must be http or https, with a host
// and without credentials, query or fragment. The error says which rule is
// broken and quotes nothing.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("base_url is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("base_url must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("base_url must name a host")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		return nil, errors.New("base_url must spell its host in ASCII (xn--...)")
	case u.User != nil:
		return nil, errors.New("base_url must hold no credentials; set the API key instead")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("base_url must hold no query or fragment")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// CheckHeader refuses header settings that cannot be sent or would change what
// a Client promises. The error names the header and quotes no value.
func CheckHeader(h http.Header) error {
	for name, values := range h {
		if !token(name) {
			return fmt.Errorf("headers: %q is no header name", name)
		}
		switch http.CanonicalHeaderKey(name) {
		case "Idempotency-Key", "X-Idempotency-Key":
			return fmt.Errorf("headers: %s would let calls be repeated unseen", name)
		case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Accept", "Accept-Encoding", "Connection":
			return fmt.Errorf("headers: %s is set by the client itself", name)
		}
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("headers: the value of %s holds a control character", name)
			}
		}
	}
	return nil
}

func token(name string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r)
	})
}
