package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/llmbus/llmbus/internal/scan"
)

// AppendJSON appends the wire form of the frame. The frames that come once per
// token are written by hand, since they are what a worker spends its time on;
// Response and Error go through encoding/json. The fields of other types are
// left out.
func (f *Frame) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, f.Seq, 10)
	dst = append(dst, `,"attempt":`...)
	dst = strconv.AppendInt(dst, int64(f.Attempt), 10)
	dst = append(dst, `,"type":`...)
	dst = AppendString(dst, string(f.Type))
	var err error
	switch f.Type {
	case FrameStart:
		dst = appendField(dst, "provider", f.Provider)
		dst = appendField(dst, "model", f.Model)
	case FrameDelta, FrameReasoning:
		dst = append(dst, `,"text":`...)
		dst = AppendString(dst, f.Text)
	case FrameToolCall:
		dst = append(dst, `,"index":`...) // 0 too: the reader assembles by it
		dst = strconv.AppendInt(dst, int64(f.Index), 10)
		dst = appendField(dst, "id", f.ID)
		dst = appendField(dst, "name", f.Name)
		dst = appendField(dst, "arguments", f.Arguments)
	case FrameEnd:
		dst = append(dst, `,"response":`...)
		if f.Response == nil {
			dst = append(dst, "null"...)
		} else {
			dst, err = f.Response.AppendReply(dst)
		}
	case FrameError:
		dst = append(dst, `,"error":`...)
		dst, err = appendValue(dst, f.Error)
	}
	return append(dst, '}'), err
}

// MarshalJSON gives the same bytes as AppendJSON.
func (f Frame) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil) }

// DecodeFrame reads one frame and checks what a reader relies on: a sequence
// number, a type, and what the last frame must carry. An unknown type is not an
// error, so that an old reader survives a new worker.
func DecodeFrame(data []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(data, &f); err != nil {
		return Frame{}, errors.New("the message is not a frame")
	}
	switch {
	case f.Seq == 0:
		return Frame{}, errors.New("the frame has no seq")
	case f.Type == "":
		return Frame{}, errors.New("the frame has no type")
	case f.Type == FrameEnd && f.Response == nil:
		return Frame{}, errors.New("the end frame has no response")
	case f.Type == FrameError && f.Error == nil:
		return Frame{}, errors.New("the error frame has no error")
	}
	return f, nil
}

// appendField appends a member, unless its value is empty.
func appendField(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return AppendString(dst, value)
}

// AppendString appends a JSON string. Invalid UTF-8 becomes U+FFFD byte by
// byte, and U+2028 and U+2029 are escaped, since older JavaScript takes them
// for line ends: both as encoding/json does. HTML characters stay as they are,
// which keeps code readable and small on the wire.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := scan.Plain(s); i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[done:i]...)
			dst = appendEscape(dst, c)
			i++
			done = i
			i += scan.Plain(s[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[done:i]...)
			dst = fmt.Appendf(dst, `\u%04x`, r)
			done = i + size
		}
		i += size
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// appendEscape appends one ASCII character that a JSON string cannot hold.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendValue appends what encoding/json makes of v, without its escapes for
// HTML and its final newline.
func appendValue(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
