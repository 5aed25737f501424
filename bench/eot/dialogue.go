package eot

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// A spoken is what one person said without an interruption: one utterance or more.
type spoken struct {
	who        string
	utterances []string
}

// A place is the end of an utterance in a dialogue.
type place struct {
	model.Clause
	text    string
	asked   string
	end     bool // the other party speaks next
	answers bool // the speaker is the one who answers questions, such as a patient
}

// readDialogues reads the dialogues of a file or of the files in a folder. It knows four formats by the name of the file:
//
//	.json  "meeting_transcripts", a list of "speaker" and "content" (QMSum)
//	.csv   a column "dialogue" with lines such as "[doctor] text" (ACI-Bench)
//	.txt   lines such as "D: text" or "A|text|label"
//
// Other files are ignored.
func readDialogues(path string) (all [][]spoken, err error) {
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		read := map[string]func(io.Reader) ([][]spoken, error){".json": readMeeting, ".csv": readTable, ".txt": readLines}[filepath.Ext(name)]
		if read == nil {
			return nil
		}
		more, err := load(name, read)
		all = append(all, more...)
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: no dialogues in .json, .csv or .txt files", path)
	}
	return all, err
}

func readMeeting(r io.Reader) ([][]spoken, error) {
	var m struct {
		Turns []struct{ Speaker, Content string } `json:"meeting_transcripts"` //nolint:tagliatelle // names of QMSum
	}
	if err := json.NewDecoder(r).Decode(&m); err != nil {
		return nil, fmt.Errorf("not a transcript: %w", err)
	}
	var d []spoken
	for _, t := range m.Turns {
		d = say(d, t.Speaker, utterances(t.Content)...)
	}
	return [][]spoken{d}, nil
}

func readTable(r io.Reader) (all [][]spoken, err error) {
	in := csv.NewReader(r)
	names, err := in.Read()
	column := -1
	for i, n := range names {
		if n == "dialogue" {
			column = i
		}
	}
	if err != nil || column < 0 {
		return nil, err
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var d []spoken
		for line := range strings.Lines(row[column]) {
			who, text, found := strings.Cut(strings.TrimPrefix(line, "["), "]")
			if found {
				d = say(d, who, utterances(text)...)
			}
		}
		all = append(all, d)
	}
}

var labeled = regexp.MustCompile(`^\x{feff}?\s*(\w+)\s*([:;|])(.*)`)

func readLines(r io.Reader) ([][]spoken, error) {
	var d []spoken
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		m := labeled.FindStringSubmatch(in.Text())
		switch {
		case m == nil:
		case m[2] == "|": // the file marks the utterances
			text, _, _ := strings.Cut(m[3], "|")
			d = say(d, m[1], cleanText(text))
		default:
			d = say(d, m[1], utterances(m[3])...)
		}
	}
	return [][]spoken{d}, in.Err()
}

// say appends utterances. Utterances without words are left out.
func say(d []spoken, who string, utterances ...string) []spoken {
	for _, u := range utterances {
		n := len(d)
		switch {
		case len(plain(u)) == 0:
		case n > 0 && d[n-1].who == who:
			d[n-1].utterances = append(d[n-1].utterances, u)
		default:
			d = append(d, spoken{who, []string{u}})
		}
	}
	return d
}

var (
	notes    = regexp.MustCompile(`\{[^}]*\}|<[^>]*>|\[[^\]]*\]`)
	split    = regexp.MustCompile(` (n't|'(?:m|s|re|ve|ll|d)\b)`)
	spaced   = regexp.MustCompile(`\s+([.,?!;:])`)
	sentence = regexp.MustCompile(`[.?!]\s+`)
	joined   = regexp.MustCompile(`(?i), +(?:and|but|so|or|because|cause|you know|i mean|then)\b`)
)

// cleanText removes notes of the transcriber and the spaces before punctuation marks.
func cleanText(text string) string {
	text = notes.ReplaceAllString(text, " ")
	text = split.ReplaceAllString(text, "$1")
	return strings.Join(strings.Fields(spaced.ReplaceAllString(text, "$1")), " ")
}

// utterances splits a text after sentences, and before a word that adds a clause after a comma.
func utterances(text string) (all []string) {
	const few = 3 // number of words; fewer words before a comma are no clause of their own
	text = cleanText(text)
	for text != "" {
		end := len(text)
		if m := sentence.FindStringIndex(text); m != nil {
			end = m[0] + 1
		}
		if m := joined.FindStringIndex(text[:end]); m != nil && len(plain(text[:m[0]])) >= few {
			end = m[0] + 1
		}
		all, text = append(all, text[:end]), strings.TrimSpace(text[end:])
	}
	return all
}

// plain returns the words of a text in lower case, without punctuation.
func plain(text string) (words []string) {
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		if w = strings.Trim(w, ".,?!…-–—:;\"'*()[]<>{}"); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// listening are the words of a listener who does not take the turn.
const listening = " uh-huh uhhuh uhuh huh-uh mhm mm-hmm mmhmm mm-hm mmhm mm hmm hm yeah yep yes right okay ok oh ah uh um sure " +
	"really huh wow yup alright all i see great good exactly so true cool mmm aha uh-hum "

func isListening(s spoken) bool {
	const most = 4
	words := plain(strings.Join(s.utterances, " "))
	for _, w := range words {
		if !strings.Contains(listening, " "+w+" ") {
			return false
		}
	}
	return len(words) <= most
}

// withoutListeners removes the words of listeners between two utterances of one person, except after a question.
func withoutListeners(d []spoken) (kept []spoken) {
	for i := range d {
		if n := len(kept); n > 0 && i+1 < len(d) && kept[n-1].who == d[i+1].who && isListening(d[i]) {
			said := kept[n-1].utterances
			if !strings.HasSuffix(said[len(said)-1], "?") {
				continue
			}
		}
		kept = say(kept, d[i].who, d[i].utterances...)
	}
	return kept
}

// placesOf returns the ends of the utterances of a dialogue, without the last turn. If who is set, it returns those of
// that speaker only. For training it leaves out turns that end without a punctuation mark in texts that have
// marks, because another person spoke at the same time.
func placesOf(d []spoken, train bool, who string) (all []place) {
	d = withoutListeners(d)
	for i := range d[:max(0, len(d)-1)] {
		asked, text := "", ""
		if i > 0 {
			asked = strings.Join(d[i-1].utterances, " ")
		}
		for k, u := range d[i].utterances {
			text = strings.TrimSpace(text + " " + u)
			last := k == len(d[i].utterances)-1
			cut := train && last && !strings.ContainsAny(u[len(u)-1:], ".?!")
			if cut || who != "" && d[i].who != who {
				continue
			}
			all = append(all, place{clauseOf(text, asked), text, asked, last, d[i].who == "P" || d[i].who == "patient"})
		}
	}
	return all
}

// clauseOf returns the clause at the end of a text with punctuation.
func clauseOf(text, asked string) model.Clause {
	c := model.Clause{Words: plain(text), Asked: plain(asked)}
	c.Mark, c.Sentences, c.Last = model.Marks(text)
	return c
}
