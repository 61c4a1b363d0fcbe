package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// read returns the body of a request, in time and within bounds.
func (s *Server) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// Pages of other origins cannot send this type without being asked first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &problem{status: http.StatusUnsupportedMediaType, kind: kindInvalid, code: "unsupported_media_type",
			message: "Content-Type must be application/json"}
	}
	limit := s.maxBody()
	if r.ContentLength > limit {
		return nil, tooLarge(r.ContentLength, limit)
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(s.cfg.ReadTimeout)); err != nil {
		return nil, fmt.Errorf("bound the time of a body: %w", err)
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		return nil, tooLarge(0, limit)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_request", message: "the body is cut off or not framed as HTTP demands"}
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, &problem{status: http.StatusRequestTimeout, kind: kindInvalid, code: "incomplete_body", retry: true,
			message: fmt.Sprintf("the body did not come whole within %s", s.cfg.ReadTimeout)}
	case body.Len() == 0:
		return nil, llm.Errorf(llm.CodeInvalidRequest, "the body is empty; send a JSON object with model and messages")
	}
	return body.Bytes(), control.SetReadDeadline(time.Time{})
}

// maxBody is what one message can hold, since a body becomes one.
func (s *Server) maxBody() int64 {
	if s.cfg.MaxBody > 0 {
		return s.cfg.MaxBody
	}
	return cmp.Or(s.cfg.Conn.MaxPayload(), 1<<20) // 0 before the first connection
}

func tooLarge(size, limit int64) error {
	if size == 0 {
		return llm.Errorf(llm.CodeTooLarge, "the body is larger than the %d bytes that are taken", limit)
	}
	return llm.Errorf(llm.CodeTooLarge, "the body is %d bytes, more than the %d bytes that are taken", size, limit)
}
