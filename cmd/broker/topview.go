package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
)

// picture writes a view of the fleet as text.
type picture struct {
	terminal
	v     *fleet.View
	width int // columns; 0 is unbounded
	out   []string
}

// draw returns the lines of a view.
func draw(t terminal, v *fleet.View, width int) []string {
	p := &picture{terminal: t, v: v, width: width}
	p.summary()
	p.features()
	p.breakers()
	p.switches()
	p.workers()
	p.events()
	return p.out
}

func (p *picture) line(cells ...cell) {
	t := table{terminal: p.terminal}
	t.row(cells...)
	p.out = append(p.out, t.lines(p.width)...)
}

func (p *picture) section(part fleet.Part, t *table) {
	if len(t.rows) < 2 {
		return
	}
	p.out = append(p.out, "")
	if p.old(part) {
		for _, row := range t.rows {
			for i := range row {
				row[i].style = faint
			}
		}
	}
	p.out = append(p.out, t.lines(p.width)...)
}

func (p *picture) old(part fleet.Part) bool {
	return slices.Contains(p.v.Stale, part)
}

// missing says in words what a part that is out of date means.
var missing = map[fleet.Part]string{
	fleet.PartNATS:     "NATS is out of reach: all below is old",
	fleet.PartWorkers:  "no worker answers",
	fleet.PartBreakers: "stored breakers cannot be followed: these are the workers' own words",
	fleet.PartSwitches: "switches cannot be followed",
	fleet.PartEvents:   "events may not be heard, so that traffic is unknown: log in to NATS as an operator",
	fleet.PartJobs:     "jobs cannot be counted",
}

func (p *picture) summary() {
	v := p.v
	p.line(cell{"llmbus", bold}, cell{cmp.Or(v.NATS.Server, "no connection"), plain}, cell{v.At.Local().Format(time.TimeOnly), plain})
	for _, part := range v.Stale {
		p.line(cell{"! " + missing[part], red})
		if part == fleet.PartNATS {
			break
		}
	}
	t := v.Traffic
	p.line(cell{fmt.Sprintf("requests %.1f/s", t.PerSec), bold}, cell{"failed " + share(t.Failed, t.Requests), ifAny(t.Failed, red)},
		cell{"failovers " + share(t.Rescued, t.Requests), ifAny(t.Rescued, amber)},
		cell{"first token " + pair(t.FirstToken), plain}, cell{"total " + pair(t.Total) + " (p50/p95)", plain})
	p.line(cell{cost(v.Cost), plain}, p.jobs(), p.dead())
	if t.Missed > 0 {
		p.line(cell{fmt.Sprintf("! %d events came too fast and are not counted", t.Missed), red})
	}
	if line := sparkline(t.Series); strings.Trim(line, "▁") != "" {
		p.line(cell{line, faint})
	}
}

func cost(c fleet.Cost) string {
	if c.Counted {
		return fmt.Sprintf("cost today $%.4f", c.TodayUSD)
	}
	return fmt.Sprintf("cost of events since %s $%.4f", c.Since.Local().Format("15:04"), c.TodayUSD)
}

func (p *picture) jobs() cell {
	j := p.v.Jobs
	switch {
	case j.Waiting == nil:
		return cell{"jobs unknown", faint}
	case j.OldestMS == nil:
		return cell{"jobs 0 waiting", plain}
	}
	return cell{fmt.Sprintf("jobs %d waiting, the oldest %s", *j.Waiting, span(*j.OldestMS)), plain}
}

func (p *picture) dead() cell {
	if d := p.v.Jobs.Dead; d != nil && *d > 0 {
		return cell{fmt.Sprintf("%d dead", *d), red}
	}
	return cell{"0 dead", plain}
}

func (p *picture) features() {
	t := &table{terminal: p.terminal}
	t.head("FEATURE", "IS", "REQ/S", "FAILED", "FAILOVERS", "P95", "CHAIN")
	for _, f := range p.v.Features {
		row := []cell{{f.Name, bold}, onOff(!f.Off), {fmt.Sprintf("%.1f", f.PerSec), plain}, {share(f.Failed, f.Requests), ifAny(f.Failed, red)},
			{share(f.Rescued, f.Requests), ifAny(f.Rescued, amber)}, {ms(f.P95MS), plain}}
		for i, target := range f.Targets {
			row = append(row, chainCell(i, target))
		}
		t.row(row...)
	}
	p.section(fleet.PartWorkers, t)
}

// chainCell is one target, with its breaker if that admits not all.
func chainCell(i int, target fleet.Target) cell {
	c := cell{text: target.Provider + "/" + target.Model}
	if i > 0 {
		c.text = "→ " + c.text
	}
	switch {
	case target.Off:
		c.text, c.style = c.text+" off", red
	case target.State != breaker.Closed:
		c.text, c.style = c.text+" "+string(target.State), colorOf(target.State)
	}
	return c
}

func (p *picture) breakers() {
	t := &table{terminal: p.terminal}
	t.head("BREAKER", "STATE", "WHY", "FOR", "NEXT CALL", "FAILURES", "WORKERS")
	for _, b := range p.v.Breakers {
		agree := cell{fmt.Sprintf("%d/%d", b.Workers, b.Of), plain}
		if b.Workers < b.Of {
			agree.style = amber
		}
		t.row(cell{name(b.Key), bold}, cell{string(b.State), colorOf(b.State)}, cell{cmp.Or(b.Why, "-"), plain}, cell{span(b.ForMS), plain},
			cell{nextCall(b), plain}, cell{fmt.Sprint(b.Failures), plain}, agree)
	}
	p.section(fleet.PartBreakers, t)
}

func nextCall(b fleet.Breaker) string {
	switch {
	case b.State == breaker.Closed:
		return "now"
	case b.RetryMS == 0:
		return "at the next request"
	}
	return "in " + (time.Duration(b.RetryMS) * time.Millisecond).Round(100*time.Millisecond).String()
}

func (p *picture) switches() {
	t := &table{terminal: p.terminal}
	t.head("SWITCH", "IS", "SET", "BY", "REASON")
	for _, s := range p.v.Switches {
		is := onOff(s.On)
		if s.Now {
			is.text = "off now"
		}
		t.row(cell{s.Key, bold}, is, cell{s.Set.Local().Format(time.DateTime), plain}, cell{cmp.Or(s.By, "-"), plain}, cell{cmp.Or(s.Reason, "-"), plain})
	}
	p.section(fleet.PartSwitches, t)
}

func (p *picture) workers() {
	t := &table{terminal: p.terminal}
	t.head("WORKER", "STATE", "SLOTS", "REQUESTS", "BUSY", "VERSION", "NATS")
	for _, w := range p.v.Workers {
		state := cell{w.State, plain}
		switch {
		case w.State == fleet.Silent:
			state = cell{"silent " + span(w.HeardMS), red}
		case w.Degraded:
			state = cell{w.State + ", degraded", red}
		case len(w.Refused) > 0:
			state = cell{w.State + ", configuration refused", red}
		}
		t.row(cell{w.Name, bold}, state, cell{fmt.Sprintf("%d/%d", w.InFlight, w.Slots), plain}, cell{fmt.Sprint(w.Requests), plain},
			cell{fmt.Sprint(w.Busy), ifAny(w.Busy, amber)}, cell{w.Version, plain}, cell{w.NATS, faint})
	}
	p.section(fleet.PartWorkers, t)
}

func (p *picture) events() {
	t := &table{terminal: p.terminal}
	t.head("LAST EVENTS", "", "", "")
	for _, e := range p.v.Events {
		t.row(eventCells(&e)...)
	}
	p.section(fleet.PartEvents, t)
}
