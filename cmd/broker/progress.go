package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress shows how far a command with many steps has come: a bar where a
// person looks on, and in any case the number of steps at the end.
type progress struct {
	out         io.Writer
	what        string
	done, total int
	live        bool
}

const barWidth = 40

func newProgress(out io.Writer, what string, total int) *progress {
	p := &progress{out: out, what: what, total: total}
	if f, ok := out.(*os.File); ok && total > 1 {
		info, err := f.Stat()
		p.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// step counts one more. The bar is drawn when it grows.
func (p *progress) step() {
	before := p.width()
	p.done++
	if p.live && p.width() > before {
		fmt.Fprintf(p.out, "\r[%s%s] %d/%d", strings.Repeat("=", p.width()), strings.Repeat(" ", barWidth-p.width()), p.done, p.total)
	}
}

func (p *progress) width() int { return min(barWidth, p.done*barWidth/max(1, p.total)) }

func (p *progress) end() {
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintf(p.out, "%s %d of %d\n", p.what, p.done, p.total)
}
