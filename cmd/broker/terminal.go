package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminal is where a person looks on, if one does.
type terminal struct {
	live  bool // the output is a terminal
	color bool
	fd    int
}

// terminalOf looks at an output. Colours are for terminals only, and not where
// NO_COLOR is set (https://no-color.org) or the terminal is dumb.
func terminalOf(out io.Writer) terminal {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return terminal{}
	}
	dumb := os.Getenv("TERM") == "dumb"
	return terminal{live: !dumb, color: os.Getenv("NO_COLOR") == "" && !dumb, fd: int(f.Fd())}
}

// size is the columns and rows of the terminal; 0 is unbounded.
func (t terminal) size() (width, height int) {
	if !t.live {
		return 0, 0
	}
	width, height, err := term.GetSize(t.fd)
	if err != nil {
		return 80, 24
	}
	return width, height
}

// printJSON writes a value for programs, indented so that people can read it.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// style is how a cell looks.
type style string

const (
	plain style = ""
	bold  style = "1"
	faint style = "2"
	red   style = "31"
	green style = "32"
	amber style = "33"
)

func (t terminal) paint(s style, text string) string {
	if !t.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// printable keeps text that others wrote from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}

// cell is a piece of a table.
type cell struct {
	text  string
	style style
}

// table lays out rows in columns. Colours do not count as width.
type table struct {
	terminal
	rows [][]cell
}

func (t *table) head(names ...string) {
	row := make([]cell, len(names))
	for i, n := range names {
		row[i] = cell{n, faint}
	}
	t.rows = append(t.rows, row)
}

func (t *table) row(cells ...cell) {
	for i := range cells {
		cells[i].text = printable(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// lines are the rows, cut at width if that is not 0.
func (t *table) lines(width int) []string {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	lines := make([]string, 0, len(t.rows))
	for _, row := range t.rows {
		lines = append(lines, t.line(row, widths, width))
	}
	return lines
}

func (t *table) line(row []cell, widths []int, width int) string {
	var b strings.Builder
	left := width
	for i, c := range row {
		text := c.text
		if i < len(row)-1 {
			text += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2)
		}
		if width > 0 {
			text = cut(text, left)
			left -= utf8.RuneCountInString(text)
		}
		b.WriteString(t.paint(c.style, text))
	}
	return strings.TrimRight(b.String(), " ")
}

// cut is the first runes of a text.
func cut(text string, runes int) string {
	if runes <= 0 {
		return ""
	}
	for i := range text {
		if runes == 0 {
			return text[:i]
		}
		runes--
	}
	return text
}
