// Opens a certificate with Go's sumdb/note, which knows nothing of Annals, and prints its first line. It ends with an error where the note is a
// checkpoint of a log.
//
// Arguments: the file of the certificate, the verifier key.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(os.Args[1])
	check(err)
	verifier, err := note.NewVerifier(os.Args[2])
	check(err)
	opened, err := note.Open(text, note.VerifierList(verifier))
	check(err)
	if _, err := tlog.ParseTree([]byte(opened.Text)); err == nil {
		log.Fatal("a certificate passes for a checkpoint")
	}
	fmt.Println(strings.SplitN(opened.Text, "\n", 2)[0])
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
