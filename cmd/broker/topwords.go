package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
)

func onOff(on bool) cell {
	if on {
		return cell{"on", plain}
	}
	return cell{"off", red}
}

func colorOf(s breaker.State) style {
	switch s {
	case breaker.Open:
		return red
	case breaker.HalfOpen, breaker.Cooling:
		return amber
	}
	return green
}

func ifAny(n int64, s style) style {
	if n == 0 {
		return plain
	}
	return s
}

func share(part, all int64) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(all))
}

func ms(v *int64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%d ms", *v)
}

func pair(l fleet.Latency) string {
	if l.P50 == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d ms", *l.P50, *l.P95)
}

// span is a duration as people say it.
func span(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

const blocks = "▁▂▃▄▅▆▇█"

// sparkline draws the ended requests of the last minute.
func sparkline(series []fleet.Second) string {
	series = series[max(0, len(series)-60):]
	most := int64(1)
	for _, s := range series {
		most = max(most, s.Ended)
	}
	var b strings.Builder
	levels := []rune(blocks)
	for _, s := range series {
		level := 0
		if s.Ended > 0 {
			level = 1 + int(s.Ended*int64(len(levels)-2)/most)
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}
