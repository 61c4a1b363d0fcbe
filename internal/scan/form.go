package scan

import "bytes"

// Form reads texts that come one after another and mostly differ in a few values,
// as the events of a stream do. The zero value is ready; it is for one stream.
type Form struct {
	cursor Cursor
	last   []byte // the text that cursor has read
}

// Text returns the text that data holds, as the JSON string that it is, within
// data. Whether data is of the form that is looked for is up to read, but it is
// asked only where something else has changed than what it left free: otherwise
// it would see, and say, the same as the time before. ok is false if read says no,
// or read no text.
func (f *Form) Text(data []byte, read func(*Cursor) bool) (text []byte, ok bool) {
	if text, ok = f.again(data); ok {
		return text, true
	}
	c := &f.cursor
	*c = Cursor{scanner: scanner{data: data}}
	if !read(c) || c.text == 0 || !c.end() {
		c.text = 0
		return nil, false
	}
	f.last = append(f.last[:0], data...)
	at := c.free[c.text-1]
	return data[at.from:at.to], true
}

// again reads data if it is the last text but for what was free there.
func (f *Form) again(data []byte) (text []byte, ok bool) {
	c, at := &f.cursor, 0
	if c.text == 0 {
		return nil, false
	}
	for i, hole := range c.free[:c.holes] {
		fixed := f.last[at:hole.from]
		if !bytes.HasPrefix(data, fixed) {
			return nil, false
		}
		data = data[len(fixed):]
		n := scalar(data)
		if n == 0 {
			return nil, false
		}
		if i == c.text-1 {
			text = data[:n]
		}
		data, at = data[n:], hole.to
	}
	return text, len(text) > len(`""`) && text[0] == '"' && bytes.Equal(data, f.last[at:])
}
