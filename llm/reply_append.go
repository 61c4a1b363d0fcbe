package llm

import "strconv"

// plain reports whether appendPlain writes the whole answer: it is text, and
// nothing in it is JSON of somebody else.
func (r *Response) plain() bool {
	return len(r.ToolCalls) == 0 && r.JSON == nil && r.Job == nil && r.Metadata == nil && len(r.Warnings) == 0
}

// appendPlain writes an answer that is plain as encoding/json would: one is
// written for every request.
func (r *Response) appendPlain(dst []byte) []byte {
	dst = AppendString(append(dst, `{"id":`...), r.ID)
	dst = AppendString(append(dst, `,"content":`...), r.Content)
	dst = appendField(dst, "provider", r.Provider)
	dst = appendField(dst, "model", r.Model)
	dst = appendField(dst, "finish_reason", string(r.FinishReason))
	dst = r.Usage.append(dst)
	dst = appendDollars(dst, r.CostUSD)
	dst = AppendString(append(dst, `,"served_by":`...), string(r.ServedBy))
	dst = appendField(dst, "fallback", string(r.Fallback))
	dst = appendTrue(dst, "stale", r.Stale)
	dst = appendTrue(dst, "replayed", r.Replayed)
	for i := range r.Attempts {
		separator := `,`
		if i == 0 {
			separator = `,"attempts":[`
		}
		dst = r.Attempts[i].append(append(dst, separator...))
	}
	if len(r.Attempts) > 0 {
		dst = append(dst, ']')
	}
	if r.Timing != (Timing{}) {
		dst = append(dst, `,"timing":{`...)
		if r.Timing.FirstTokenMS != 0 {
			dst = append(strconv.AppendInt(append(dst, `"first_token_ms":`...), r.Timing.FirstTokenMS, 10), ',')
		}
		dst = append(strconv.AppendInt(append(dst, `"total_ms":`...), r.Timing.TotalMS, 10), '}')
	}
	return append(appendTrue(dst, "degraded", r.Degraded), '}')
}

func (a *Attempt) append(dst []byte) []byte {
	dst = AppendString(append(dst, `{"provider":`...), a.Provider)
	dst = AppendString(append(dst, `,"model":`...), a.Model)
	dst = AppendString(append(dst, `,"class":`...), string(a.Class))
	dst = appendCount(dst, "http_status", int64(a.HTTPStatus))
	dst = strconv.AppendInt(append(dst, `,"ms":`...), a.MS, 10)
	dst = appendCount(dst, "first_token_ms", a.FirstTokenMS)
	dst = a.Usage.append(dst)
	return append(appendDollars(dst, a.CostUSD), '}')
}

// append writes the usage as a member, unless there is none.
func (u *Usage) append(dst []byte) []byte {
	if u == nil {
		return dst
	}
	dst = append(dst, `,"usage":{`...)
	from := len(dst)
	for _, count := range []struct {
		name string
		n    *int64
	}{
		{"input_tokens", u.InputTokens}, {"output_tokens", u.OutputTokens}, {"cached_input_tokens", u.CachedInputTokens},
		{"cache_write_tokens", u.CacheWriteTokens}, {"reasoning_tokens", u.ReasoningTokens},
	} {
		if count.n != nil {
			dst = strconv.AppendInt(appendKey(dst, count.name), *count.n, 10)
		}
	}
	if dst = appendTrue(dst, "estimated", u.Estimated); len(dst) > from {
		dst = append(dst[:from], dst[from+1:]...) // the first comma
	}
	return append(dst, '}')
}

func appendKey(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}

func appendTrue(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(appendKey(dst, name), "true"...)
}

func appendCount(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(appendKey(dst, name), n, 10)
}

func appendDollars(dst []byte, d float64) []byte {
	if d == 0 {
		return dst
	}
	return strconv.AppendFloat(appendKey(dst, "cost_usd"), d, 'f', -1, 64)
}
