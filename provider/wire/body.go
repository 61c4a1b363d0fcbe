package wire

import (
	"bufio"
	"compress/gzip"
	"io"
)

// plain undoes gzip where the body begins like it, whatever the headers say:
// some edges compress what nobody asked them to.
func plain(r io.Reader) io.Reader { return &gunzip{src: bufio.NewReaderSize(r, readBuffer)} }

type gunzip struct {
	src  *bufio.Reader
	next io.Reader // nil until the first read has seen how the body begins
}

// Read decides by the first two bytes, and then only passes on.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.next == nil {
		g.next = g.src
		if magic, err := g.src.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
			unzipped, err := gzip.NewReader(g.src)
			if err != nil {
				return 0, err
			}
			g.next = unzipped
		}
	}
	return g.next.Read(p)
}

// bounded fails with ErrTooLong instead of reading past its limit. It counts
// after decompression, so that a small body cannot become a huge one.
type bounded struct {
	r    io.Reader
	left int64
}

// Read reads one byte more than the limit allows to know that there is more.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLong
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, ErrTooLong
	}
	return n, err
}
