package main

import (
	"bytes"
	"fmt"
	"math"
)

// Size of a plot and of its margins, in pixels.
const (
	plotWidth, plotHeight       = 560, 260
	left, right, above, beneath = 60, 20, 40, 50
)

// draw makes an SVG of what each point costs in ratios to the floor, over a
// logarithmic axis. The vertical axis begins at 0, so that flat looks flat.
func draw(title string, points []point) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<title>CPU time of a request over the number of %s</title>`+"\n", title)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="14">CPU time of a request, in times the floor's</text>`+"\n", left)
	top := 1.0
	for _, p := range points {
		top = max(top, math.Ceil(max(p.cpu, p.worker)))
	}
	last := float64(points[len(points)-1].n)
	x := func(n int) float64 {
		return left + (plotWidth-left-right)*math.Log(float64(n))/max(math.Log(last), 1e-9)
	}
	y := func(v float64) float64 { return plotHeight - beneath - (plotHeight-above-beneath)*v/top }
	for v := 0.0; v <= top; v++ {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`, left, plotWidth-right, y(v), y(v))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left-8, y(v)+4, v)
	}
	for _, p := range points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(p.n), plotHeight-beneath+18, p.n)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+plotWidth-right)/2, plotHeight-12, title)
	line(&b, points, x, y, func(p point) float64 { return p.cpu }, "#1f6feb", "with the NATS server")
	line(&b, points, x, y, func(p point) float64 { return p.worker }, "#8a8f98", "worker alone")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func line(b *bytes.Buffer, points []point, x func(int) float64, y func(float64) float64, of func(point) float64, colour, name string) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
	for _, p := range points {
		fmt.Fprintf(b, "%.1f,%.1f ", x(p.n), y(of(p)))
	}
	b.WriteString(`"/>`)
	for _, p := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(p.n), y(of(p)), colour)
	}
	end := points[len(points)-1]
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`+"\n", plotWidth-right, y(of(end))-8, colour, name)
}
