package dashboard_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// TestLargeCampaignInBrowser uploads 50,000 rows, watches their import, launches the campaign, looks at its contacts,
// pauses all campaigns, and duplicates it.
func TestLargeCampaignInBrowser(t *testing.T) {
	h, imports := dashtest.NewWithImports(t)
	h.AddSales(t, "us", true)
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { imports.Run(ctx) })
	defer over.Wait()
	defer stop()

	b := h.Chrome(t)
	awaitImport := func() {
		for range 240 { // the import may take longer than Until waits
			if strings.Contains(b.Text(), "Draft created") {
				return
			}
			b.Run("new Promise((r) => setTimeout(r, 500))")
		}
		t.Fatalf("no draft: %s", b.Text())
	}
	b.SignIn("oscar")
	b.Go("campaigns/new")
	b.Run(`(() => { const file = new DataTransfer();
		file.items.add(new File(["phone,name\n" + Array.from({length: 50000}, (_, i) => "+1212" + (2000000 + i) + ",Ada " + i + "\n").join("")], "rows.csv"));
		document.querySelector("[name=rows]").files = file.files; })()`)
	b.Press("Continue")
	b.Until("document.querySelector('h1')?.textContent === 'Map columns'")
	b.Press("Continue")
	b.Fill("[name=name]", "Spring")
	b.Run(`for (const box of document.querySelectorAll("[name=days]")) box.checked = false`)
	b.Press("Create draft")
	b.Until("document.readyState === 'complete' && document.querySelector('h1')?.textContent === 'Import of Spring'")
	b.Run(`window.seen = new Set(); setInterval(() => { const p = document.querySelector("progress"); if (p) seen.add(p.value); }, 50)`)
	awaitImport()
	// The page asks each second, and a fast machine imports the list in two to three.
	if n := dashtest.Read[int](b, "[...seen].filter((v) => v > 0 && v < 100).length"); n < 1 || dashtest.Read[int](b, "seen.size") < 2 {
		t.Errorf("the progress did not move: %s", dashtest.Read[string](b, "JSON.stringify([...seen])"))
	}
	b.Press("Open the campaign")
	b.Until("document.querySelector('[name=attest]')")
	b.Run(`document.querySelector("#head [name=launch]").click()`) // without the confirmation
	b.Until("document.activeElement.name === 'attest'")
	b.Run(`document.querySelector("[name=attest]").checked = true`)
	b.Press("Launch")
	b.Until("document.body.innerText.includes('Campaign launched.') && document.querySelector('#head .first').textContent === 'Pause'")
	if text := b.Text(); !strings.Contains(text, "50,000") || !strings.Contains(text, "End not known: too few calls yet.") {
		t.Errorf("the page says %s", text)
	}
	b.Run("document.querySelector('#more-actions summary').click()")
	b.Run(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	b.Until("!document.querySelector('#more-actions').open && document.activeElement.matches('#more-actions summary')")
	b.Press("Show contacts")
	b.Press("Next page")
	if n := dashtest.Read[int](b, "document.querySelectorAll('tbody tr').length"); n != 50 {
		t.Errorf("%d contacts on the second page", n)
	}
	id := h.Text(t, "SELECT id FROM campaigns")
	b.Press("Live")
	b.Press("Stop calls")
	b.Press("Pause 1 campaign")
	if got := status(t, h, id); got != "paused" {
		t.Errorf("the campaign is %s", got)
	}
	b.Go("campaigns/" + id)
	b.Press("Duplicate")
	b.Run(`document.querySelector("[name=contacts]").value = "not_reached"`)
	b.Press("Continue")
	b.Press("Create draft")
	awaitImport()
	if n := h.Count(t, "SELECT count(*) FROM contacts WHERE campaign_id <> $1", id); n != 50_000 {
		t.Errorf("the copy has %d contacts", n)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}
