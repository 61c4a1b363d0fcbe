package chain

import (
	"strconv"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// AppendJSON appends the event as encoding/json would write it. Two events come
// of every request, which is too often for that.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = llm.AppendString(append(dst, `{"event":`...), e.Name)
	dst = e.Time.AppendFormat(append(dst, `,"time":"`...), time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendText(dst, `,"request_id":`, e.RequestID)
	dst = appendText(dst, `,"feature":`, e.Feature)
	dst = appendText(dst, `,"tenant":`, e.Tenant)
	dst = appendText(dst, `,"provider":`, e.Provider)
	dst = appendText(dst, `,"model":`, e.Model)
	dst = appendText(dst, `,"class":`, string(e.Class))
	dst = appendText(dst, `,"code":`, string(e.Code))
	dst = appendText(dst, `,"limit":`, e.Limit)
	dst = appendNumber(dst, `,"attempts":`, int64(e.Attempts))
	dst = appendNumber(dst, `,"ms":`, e.MS)
	dst = appendNumber(dst, `,"first_token_ms":`, e.FirstTokenMS)
	if e.CostUSD != 0 {
		dst = strconv.AppendFloat(append(dst, `,"cost_usd":`...), e.CostUSD, 'f', -1, 64)
	}
	return append(dst, '}')
}

// appendText appends a member, unless it is empty.
func appendText(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return llm.AppendString(append(dst, key...), value)
}

// appendNumber appends a member, unless it is 0.
func appendNumber(dst []byte, key string, value int64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, key...), value, 10)
}
