package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Problem is an error answer in one form for all providers. Adapters get it
// from ReadProblem, or fill it in for what only they know.
type Problem struct {
	Status      int            // of the answer; 2xx for an error within one
	Codes       []string       // every code, type and reason in it, lower case, the most telling first
	HTML        bool           // the body is a page: it comes from the path, not from the provider
	RetryAfter  *time.Duration // from the headers or the body
	ShouldRetry *bool          // x-should-retry
	RequestID   string

	message string // for the phrase rules only; it must not leave the package
	numeric int    // an HTTP status that the body names
}

// ProblemText makes a Problem of an error that is no more than a sentence.
func ProblemText(message string) Problem { return Problem{message: clip(message)} }

// ProblemCode makes a Problem of a code or type.
func ProblemCode(code string) Problem {
	var p Problem
	p.addText(code)
	return p
}

const (
	maxMessage   = 4 << 10 // bytes of a message that the phrase rules look at
	maxRequestID = 128
)

// ReadProblem reads the error bodies of all providers and of the proxies before
// them. ok reports whether body is an error object at all: a JSON object that
// says so, or an array around one.
func ReadProblem(body []byte) (p Problem, ok bool) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\uFEFF")))
	if len(body) == 0 {
		return p, false
	}
	if body[0] == '<' {
		return Problem{HTML: true}, false
	}
	if body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 && list[0][0] == '{' {
			return ReadProblem(list[0])
		}
	}
	var outer errorObject
	if body[0] != '{' || json.Unmarshal(body, &outer) != nil {
		return ProblemText(string(body)), false
	}
	p.RequestID = string(outer.RequestID)
	ok = p.readOuter(&outer)
	return p, ok
}

// errorObject holds the fields of all dialects. The types are lenient, since no
// field may keep the rest from being read.
type errorObject struct {
	Error     json.RawMessage `json:"error"`
	Object    text            `json:"object"`
	Message   json.RawMessage `json:"message"`
	Detail    json.RawMessage `json:"detail"`
	Code      text            `json:"code"`
	Type      text            `json:"type"`
	Status    text            `json:"status"`
	RequestID text            `json:"request_id"`

	StatusCode    text `json:"status_code"`
	StatusCamel   text `json:"statusCode"`
	RawStatusCode text `json:"raw_status_code"`

	Inner    *errorObject    `json:"innererror"`
	Details  json.RawMessage `json:"details"`
	Metadata json.RawMessage `json:"metadata"`
}

// text takes a string or a number; anything else is empty.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		if s = string(data); len(s) == 0 || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
			s = ""
		}
	}
	*t = text(s)
	return nil
}

// readOuter finds the error within the outermost object.
func (p *Problem) readOuter(o *errorObject) bool {
	nested := bytes.TrimSpace(o.Error)
	switch {
	case len(nested) > 0 && nested[0] == '{':
		var inner errorObject
		_ = json.Unmarshal(nested, &inner)
		p.read(&inner)
		p.addStatus(o.StatusCode, o.StatusCamel, o.RawStatusCode)
		return true
	case len(nested) > 0 && nested[0] == '"':
		p.read(o)
		p.message = sentence(nested)
		return p.message != ""
	}
	p.read(o)
	return string(nested) == "true" || o.Object == "error" || o.Type == "error" || len(o.Detail) > 0 ||
		o.StatusCamel != "" && len(o.Message) > 0
}

func (p *Problem) read(o *errorObject) {
	p.addText(string(o.Code))
	p.addText(string(o.Type))
	p.addText(string(o.Status))
	p.addStatus(o.StatusCode, o.StatusCamel, o.RawStatusCode, o.Code, o.Status)
	if o.Inner != nil {
		p.addText(string(o.Inner.Code))
	}
	p.readDetails(o.Details)
	p.readMetadata(o.Metadata)
	p.message = sentence(o.Message)
	if p.message == "" {
		p.message = sentence(o.Detail)
	}
}

// readDetails reads Google's list of typed details and Anthropic's object.
func (p *Problem) readDetails(raw json.RawMessage) {
	type detail struct {
		Reason     text `json:"reason"`
		ErrorCode  text `json:"error_code"`
		RetryDelay text `json:"retryDelay"`
		Violations []struct {
			QuotaValue text `json:"quotaValue"`
		} `json:"violations"`
	}
	var list []detail
	if json.Unmarshal(raw, &list) != nil {
		var one detail
		_ = json.Unmarshal(raw, &one)
		list = []detail{one}
	}
	for _, d := range list {
		p.addText(string(d.Reason))
		p.addText(string(d.ErrorCode))
		if seconds, found := strings.CutSuffix(string(d.RetryDelay), "s"); found {
			if wait, ok := quantity(seconds, time.Second); ok {
				p.RetryAfter = new(wait.Truncate(time.Millisecond))
			}
		}
		for _, v := range d.Violations {
			if v.QuotaValue == "0" {
				p.addText("quota_value_0")
			}
		}
	}
}

// readMetadata reads what OpenRouter adds.
func (p *Problem) readMetadata(raw json.RawMessage) {
	var meta struct {
		LimitSource  text            `json:"limit_source"`
		FlaggedInput json.RawMessage `json:"flagged_input"`
		ErrorType    text            `json:"error_type"`
	}
	_ = json.Unmarshal(raw, &meta)
	p.addText(string(meta.LimitSource))
	p.addText(string(meta.ErrorType))
	if len(meta.FlaggedInput) > 0 && string(meta.FlaggedInput) != "null" {
		p.addText("flagged_input")
	}
}

func (p *Problem) addText(s string) {
	if s = strings.ToLower(code(s, maxCode)); s != "" {
		p.Codes = append(p.Codes, s)
	}
}

func (p *Problem) addStatus(candidates ...text) {
	for _, c := range candidates {
		if n, err := strconv.Atoi(string(c)); err == nil && n >= 400 && n <= 599 && p.numeric == 0 {
			p.numeric = n
		}
	}
}

const maxCode = 64

// code returns s if it looks like a code, else "": a sentence, or what could be
// a key, must not get into logs as one.
func code(s string, max int) string {
	if len(s) > max || strings.HasPrefix(s, "sk-") || strings.HasPrefix(s, "AIza") {
		return ""
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '.' && r != '-' {
			return ""
		}
	}
	return s
}

// sentence is a message as text, whatever JSON it is.
func sentence(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return clip(s)
	}
	return clip(string(raw))
}

func clip(s string) string { return s[:min(len(s), maxMessage)] }
