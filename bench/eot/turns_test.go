package eot

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

func TestUtterances(t *testing.T) {
	for text, want := range map[string]string{
		"So it does n't hurt , but I 'm tired . Okay ?":      "So it doesn't hurt,|but I'm tired.|Okay?",
		"Well , and {vocalsound} then it went <UNIN/> away.": "Well, and then it went away.",
		"[noise]": "",
	} {
		if got := strings.Join(utterances(text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestListenersAreRemoved(t *testing.T) {
	d := []spoken{
		{"a", []string{"It started on Monday."}},
		{"b", []string{"Mm-hmm."}},
		{"a", []string{"And it got worse."}},
		{"b", []string{"Did you call?"}},
		{"a", []string{"Yes."}},
		{"b", []string{"Good."}},
	}
	var got []string
	for _, p := range placesOf(d, false, "") {
		end := ""
		if p.end {
			end = " END"
		}
		got = append(got, p.text+end)
	}
	want := []string{"It started on Monday.", "It started on Monday. And it got worse. END", "Did you call? END", "Yes. END"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := placesOf(d, false, "b"); len(got) != 1 || got[0].asked == "" {
		t.Errorf("%+v", got)
	}
}

// dialogues writes the same dialogue in each format: people who answer "no" have finished, people who say "well" continue.
func dialogues(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt":    strings.Repeat("D: Do you smoke?\n\nP: No.\nP: Well.\nP: I drink a bit.\n", 20) + "D: Okay.\n",
		"b.txt":    strings.Repeat("A|do you smoke?|q\nB|no.|a\nA|well.|s\nA|i see it.|s\n", 20),
		"c.csv":    "id,dialogue\n1,\"[doctor] do you smoke ?\n[patient] no .\n[doctor] well . that is it .\n[patient] thanks .\"\n",
		"d.json":   `{"meeting_transcripts": [{"speaker": "A", "content": "Well . I did it ."}, {"speaker": "B", "content": "No ."}]}`,
		"e.csv":    "id,note\n1,nothing\n",
		"notes.md": "D: not read",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDialogues(t *testing.T) {
	dir := dialogues(t)
	all, err := readDialogues(dir)
	if n := slices.IndexFunc(all, func(d []spoken) bool { return len(d) == 0 }); err != nil || len(all) != 4 || n >= 0 {
		t.Fatalf("%d dialogues, %v: %q", len(all), err, all)
	}
	var out bytes.Buffer
	file := dir + "/turns"
	if err = (Dialogues{Paths: []string{dir}, Fit: file}).Run(&out); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.ReadTurns(string(first))
	if err != nil {
		t.Fatal(err)
	}
	ask := "do you smoke?"
	if a, b := m.End(clauseOf("no.", ask)), m.End(clauseOf("well.", ask)); a < b+1 {
		t.Errorf("no: %.2f, well: %.2f", a, b)
	}
	if err = (Dialogues{Paths: []string{dir}, Fit: file}).Run(&out); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("two trainings differ, %v", err)
	}
	if err := (Dialogues{Paths: []string{dir}}).Run(&out); err != nil || !strings.Contains(out.String(), "AUC") {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, bad := range []string{dir + "/none", dir + "/notes.md"} {
		if err := (Dialogues{Paths: []string{bad}}).Run(&out); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestArea(t *testing.T) {
	ended := []bool{true, false, true, false}
	for want, scores := range map[float64][]float64{1: {4, 1, 3, 2}, 0.5: {1, 1, 1, 1}, 0.25: {1, 2, 3, 4}} {
		if got := area(scores, ended); got != want {
			t.Errorf("%v: %v, want %v", scores, got, want)
		}
	}
}
