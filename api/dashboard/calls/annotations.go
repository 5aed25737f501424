package calls

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/store"
)

// tagOptions are the tags to filter by. They include a tag that the query names.
func tagOptions(r *ui.Request, tags []string) []ui.Option {
	if named := r.Query("tag"); named != "" && !slices.Contains(tags, named) {
		tags = append(tags, named)
	}
	all := []ui.Option{{Label: r.Texts.T("ui.filter.any")}}
	for _, t := range tags {
		all = append(all, ui.Option{Value: t, Label: t})
	}
	return all
}

// anyScore is the value of the score filter that selects calls with a score; low those with 1 or 2.
const (
	anyScore = "any"
	lowScore = "low"
)

func scoreOptions(texts *ui.Texts) []ui.Option {
	all := []ui.Option{
		{Label: texts.T("ui.filter.any")},
		{Value: anyScore, Label: texts.T("calls.filters.score.any")},
		{Value: lowScore, Label: texts.T("calls.filters.score.low")},
	}
	for n := range 5 {
		all = append(all, ui.Option{Value: strconv.Itoa(n + 1), Label: strconv.Itoa(n + 1)})
	}
	return all
}

func scoresOf(value string) []int {
	switch value {
	case anyScore:
		return []int{1, 2, 3, 4, 5}
	case lowScore:
		return []int{1, 2}
	}
	if n, err := strconv.Atoi(value); err == nil {
		return []int{n}
	}
	return nil
}

// Stars shows the score.
func (s row) Stars() string { return stars(s.Score) }

// Stars shows the score.
func (o one) Stars() string { return stars(o.Marks.Score) }

// ScoreChoice are the scores.
func (o one) ScoreChoice() []int { return []int{1, 2, 3, 4, 5} }

func stars(n int) string { return strings.Repeat("★", n) + strings.Repeat("☆", 5-n) }

// backTo returns the page of the call with the filters that the form names.
func backTo(r *ui.Request) string {
	to := "calls/" + r.ID()
	if list := r.Text("filters"); strings.HasPrefix(list, "?") {
		to += list
	}
	return to + "#marks"
}

// annotate changes what operators added to a call, unless the form has a fault. The change returns the audit entry without its
// object.
func annotate(r *ui.Request, notice string, fault error, change func(q db.Querier) (operator.Entry, error)) (ui.Result, error) {
	done := ui.Result{To: backTo(r), Notice: notice}
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		err := store.HoldCall(r.Context(), q, r.Org(), r.ID())
		if err == nil {
			err = fault
		}
		if err != nil {
			return operator.Entry{}, err
		}
		e, err := change(q)
		e.Object = r.ID()
		return e, err
	})
	if err != nil && (errors.Is(err, fault) || errors.Is(err, store.ErrFull)) {
		done.Notice, done.Failed, err = ui.Invalid("", err).Error(), true, nil
	}
	return done, err
}

// tag adds a tag, or removes the one that the field "remove" names. The audit log does not have its text, because the tag
// can be erased and the log cannot.
func tag(r *ui.Request) (ui.Result, error) {
	if old := r.Text("remove"); old != "" {
		return annotate(r, r.Texts.T("calls.tag.removed"), nil, func(q db.Querier) (operator.Entry, error) {
			had, err := store.RemoveTag(r.Context(), q, r.ID(), old)
			if err != nil || !had {
				return operator.Entry{}, err
			}
			return operator.Entry{Action: "call.tag", Before: map[string]any{"characters": utf8.RuneCountInString(old)}}, nil
		})
	}
	name, fault := store.NormalizeTag(r.Text("tag"))
	return annotate(r, r.Texts.T("calls.tag.added"), fault, func(q db.Querier) (operator.Entry, error) {
		added, err := store.AddTag(r.Context(), q, r.Org(), r.ID(), name, r.Session.Email)
		if err != nil || !added {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "call.tag", After: map[string]any{"characters": utf8.RuneCountInString(name)}}, nil
	})
}

// score sets the score; 0 removes it.
func score(r *ui.Request) (ui.Result, error) {
	n, fault := strconv.Atoi(r.Text("score"))
	if fault != nil || n < 0 || n > 5 {
		fault = errors.New(r.Texts.T("calls.score.invalid"))
	}
	return annotate(r, r.Texts.T("calls.score.saved"), fault, func(q db.Querier) (operator.Entry, error) {
		before, err := store.SetScore(r.Context(), q, r.Org(), r.ID(), n, r.Session.Email)
		if err != nil || before == n {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "call.score", Before: map[string]any{"score": before}, After: map[string]any{"score": n}}, nil
	})
}

// note adds a note, or deletes the one that the field "delete" names. The audit log has its id and not its text, because
// the text can be erased and the log cannot.
func note(r *ui.Request) (ui.Result, error) {
	if id := r.Text("delete"); id != "" {
		return annotate(r, r.Texts.T("calls.note.deleted"), nil, func(q db.Querier) (operator.Entry, error) {
			had, err := store.DeleteNote(r.Context(), q, r.ID(), id)
			if err != nil || !had {
				return operator.Entry{}, err
			}
			return operator.Entry{Action: "call.note", Before: map[string]any{"note": id}}, nil
		})
	}
	text, fault := r.Text("note"), error(nil)
	n := utf8.RuneCountInString(text)
	if n == 0 || n > store.MaxNoteLen {
		fault = errors.New(r.Texts.T("calls.note.invalid", "limit", store.MaxNoteLen))
	}
	return annotate(r, r.Texts.T("calls.note.added"), fault, func(q db.Querier) (operator.Entry, error) {
		id, err := store.AddNote(r.Context(), q, r.ID(), text, r.Session.Email)
		return operator.Entry{Action: "call.note", After: map[string]any{"note": id, "characters": n}}, err
	})
}
