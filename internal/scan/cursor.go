package scan

// Cursor reads one JSON text in a single pass, for those who know what it should
// look like. A method reads the value that is next and reports whether it was
// what the method says; after a no the Cursor is of no further use.
type Cursor struct {
	scanner
	free  [maxFree]span // values that may be others in the next text, in order
	holes int           // of free that are in use
	text  int           // 1 + the place of the text in free; 0 without one
}

type span struct{ from, to int }

// Read reports whether read takes all of data.
func Read(data []byte, read func(*Cursor) bool) bool {
	c := Cursor{scanner: scanner{data: data}}
	return read(&c) && c.end()
}

const maxFree = 8

// Object reads an object whose members all please use, which reads the value.
// A key with escapes is handed over as it stands there, and so is none that
// anybody knows.
func (c *Cursor) Object(use func(key []byte) bool) bool {
	if c.space(); !c.next('{') {
		return false
	}
	if c.space(); c.next('}') {
		return true
	}
	for {
		key, ok := c.String()
		if c.space(); !ok || !c.next(':') || !use(key[1:len(key)-1]) {
			return false
		}
		c.space()
		if c.next('}') {
			return true
		}
		if !c.next(',') {
			return false
		}
	}
}

// List reads a list, each element of which use reads. It is not for a list after
// the text, which could be the same list once more.
func (c *Cursor) List(use func(i int) bool) bool {
	if c.space(); c.text > 0 || !c.next('[') {
		return false
	}
	if c.space(); c.next(']') {
		return true
	}
	for i := 0; use(i); i++ {
		c.space()
		if c.next(']') {
			return true
		}
		if !c.next(',') {
			return false
		}
	}
	return false
}

// String reads a string and returns it as the JSON that it is.
func (c *Cursor) String() (raw []byte, ok bool) {
	c.space()
	from := c.at
	if c.at == len(c.data) || c.data[c.at] != '"' || !c.str() {
		return nil, false
	}
	return c.data[from:c.at], true
}

// Number reads a number that has neither fraction nor exponent.
func (c *Cursor) Number() (n int64, ok bool) {
	c.space()
	minus, from := c.next('-'), c.at
	for ; c.at < len(c.data) && '0' <= c.data[c.at] && c.data[c.at] <= '9'; c.at++ {
		n = n*10 + int64(c.data[c.at]-'0')
	}
	digits := c.at - from
	if digits == 0 || digits > 18 || digits > 1 && c.data[from] == '0' {
		return 0, false
	}
	if c.at < len(c.data) && (c.data[c.at] == '.' || c.data[c.at]|0x20 == 'e') {
		return 0, false
	}
	if minus {
		n = -n
	}
	return n, true
}

// Is reads this one value, written like this.
func (c *Cursor) Is(value string) bool {
	c.space()
	return c.literal(value)
}

// Any reads a value, whatever it is.
func (c *Cursor) Any() bool { return c.value(0) }

// Free is Any for a value that another may stand for in the next text.
func (c *Cursor) Free() bool {
	c.space()
	from := c.at
	if n := scalar(c.data[from:]); n > 0 && c.holes < maxFree {
		c.at += n
		c.free[c.holes] = span{from, c.at}
		c.holes++
		return true
	}
	return c.value(0)
}

// Text reads the one text that matters, which is not empty. It is free, too.
func (c *Cursor) Text() bool {
	raw, ok := c.String()
	if !ok || len(raw) == len(`""`) || c.text > 0 || c.holes == maxFree {
		return false
	}
	c.free[c.holes] = span{c.at - len(raw), c.at}
	c.holes++
	c.text = c.holes
	return true
}

// end reports whether nothing follows.
func (c *Cursor) end() bool {
	c.space()
	return c.at == len(c.data)
}

// scalar is the length of the string or number that data begins with, or 0.
func scalar(data []byte) int {
	s := scanner{data: data}
	if len(data) > 0 && data[0] == '"' && s.str() || s.number() {
		return s.at
	}
	return 0
}
