package wire

import (
	"bytes"
	"compress/gzip"
	"io"
)

// plain undoes gzip where the body begins like it, whatever the headers say:
// some edges compress what nobody asked them to. It keeps no buffer, since every
// stream that waits would have one.
func plain(r io.Reader) io.Reader { return &gunzip{src: r} }

type gunzip struct {
	src  io.Reader
	next io.Reader // nil until the first read has seen how the body begins
}

// Read decides by the first two bytes, and then only passes on.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.next == nil {
		if err := g.begin(); err != nil {
			return 0, err
		}
	}
	return g.next.Read(p)
}

func (g *gunzip) begin() error {
	magic := make([]byte, 2)
	n, err := io.ReadFull(g.src, magic)
	if n == 0 {
		return err
	}
	whole := io.MultiReader(bytes.NewReader(magic[:n]), g.src)
	if string(magic) != "\x1f\x8b" {
		g.next = whole
		return nil
	}
	unzipped, err := gzip.NewReader(whole)
	if err == nil {
		g.next = unzipped
	}
	return err
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
