package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// Errors of reading an answer.
var (
	ErrTooLong = errors.New("the answer is longer than its limit")
	ErrBroken  = errors.New("the answer is not in the form it should have")

	errBadRequest = errors.New("the request could not be made: check the URL")
)

// transportError says in our words what the transport met. The text of the
// cause is not shown, because net/http quotes what the peer sent.
type transportError struct {
	text  string
	cause error
}

func (e *transportError) Error() string { return e.text }
func (e *transportError) Unwrap() error { return e.cause }

func describe(err error) error {
	if errors.Is(err, ErrTooLong) || errors.Is(err, ErrBroken) {
		return err
	}
	return &transportError{transportText(err), err}
}

func transportText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Timeout() && op.Op == "dial" {
		return "connecting took too long"
	}
	if errors.Is(err, context.DeadlineExceeded) { // of TLS; the caller's own was looked at before
		return "connecting took too long"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name could not be resolved"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed early"
	case isTLS(err):
		return "TLS could not be agreed on"
	}
	return "connection failed"
}

func isTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	return record || alert || verify || authority
}
