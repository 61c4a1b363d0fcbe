package scan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// event reads {"kind":"text","n":1,"free":…,"any":…,"list":[{"text":"…"}]}.
func event(c *Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "kind":
			return c.Is(`"text"`)
		case "n":
			_, ok := c.Number()
			return ok
		case "free":
			return c.Free()
		case "any":
			return c.Any()
		case "list":
			return c.List(func(i int) bool {
				return i == 0 && c.Object(func(key []byte) bool { return string(key) == "text" && c.Text() })
			})
		}
		return false
	})
}

func TestForm(t *testing.T) {
	var f Form
	read := 0
	count := func(c *Cursor) bool { read++; return event(c) }
	for _, step := range []struct {
		data, want string // "" is a no
		reads      int
	}{
		{`{"kind":"text","n":1,"free":"x","list":[{"text":"a"}]}`, "a", 1},
		{`{"kind":"text","n":1,"free":"yy","list":[{"text":"b\n"}]}`, "b\n", 1},
		{`{"kind":"text","n":1,"free":-1.5e3,"list":[{"text":"c"}]}`, "c", 1},
		{`{"kind":"text","n":2,"free":-1,"list":[{"text":"d"}]}`, "d", 2},
		{`{"kind":"text","n":2,"free":{"a":[1]},"list":[{"text":"e"}]}`, "e", 3},
		{`{"kind":"text","n":2,"free":{"a":[1]},"list":[{"text":""}]}`, "", 4},
		{`{"kind":"text","n":2,"free":{"a":[1]},"list":[{"text":"f"}]}`, "f", 5},
		{`{"kind":"text","n":2,"free":{"a":[1]},"list":[{"text":1}]}`, "", 6},
		{`{"free":"x"}`, "", 7},
		{`{"list":[{"text":"g"}]} `, "g", 8},
		{`{"list":[{"text":"g"}]} x`, "", 9},
		{`{"list":[{"text":"a","text":"b"}]}`, "", 10},
		{` { "list" : [ { "text" : "h" } ] , "any" : [ { } , null , true ] } `, "h", 11},
		{`{"l\u0069st":[{"text":"i"}]}`, "", 12},
		{`{"list":[{"text":"j"},{"text":"k"}]}`, "", 13},
		{`{"n":01,"list":[{"text":"l"}]}`, "", 14},
		{`{"n":-0,"list":[{"text":"m"}]}`, "m", 15},
		{`{"n":9999999999999999999,"list":[{"text":"n"}]}`, "", 16},
		{`{"list":[{"text":"o"}],"list":[{}]}`, "", 17},
		{``, "", 18},
	} {
		text, ok := f.Text([]byte(step.data), count)
		require.Equal(t, step.want != "", ok, step.data)
		if ok {
			require.Equal(t, step.want, Unquote(text))
		}
		require.Equal(t, step.reads, read, step.data)
	}
}

func TestAFormHasSoManyFreeValues(t *testing.T) {
	var f Form
	const many = `"free":1,"free":1,"free":1,"free":1,"free":1,"free":1,"free":1`
	text, ok := f.Text([]byte(`{`+many+`,"list":[{"text":"a"}],"free":1}`), event)
	require.True(t, ok)
	require.Equal(t, `"a"`, string(text))
	_, ok = f.Text([]byte(`{`+many+`,"free":1,"list":[{"text":"a"}]}`), event)
	require.False(t, ok, "no room is left for the text")
}

// A text is read after another as it is read alone, and as encoding/json reads it.
func FuzzForm(f *testing.F) {
	const first = `{"kind":"text","n":1,"free":"x","list":[{"text":"a"}]}`
	for _, second := range []string{
		first, `{"kind":"text","n":1,"free":7,"list":[{"text":"m"}]}`, `{"kind":"text","n":1,"free":"x","list":[{"text":"a\",\"b"}]}`,
		`{"kind":"text","n":1,"free":"x","list":[{"text":"a","b":"c"}]}`, `{"kind":"text","n":1,"free":"x","free":"","list":[{"text":""}]}`,
	} {
		f.Add([]byte(first), []byte(second))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var after, alone Form
		after.Text(first, event)
		text, ok := after.Text(second, event)
		want, is := alone.Text(second, event)
		require.Equal(t, is, ok)
		require.Equal(t, string(want), string(text))
		if !ok {
			return
		}
		var long struct {
			Kind string
			N    int64
			List []struct{ Text string }
		}
		require.NoError(t, json.Unmarshal(second, &long))
		require.Len(t, long.List, 1)
		require.Equal(t, long.List[0].Text, Unquote(text))
	})
}
