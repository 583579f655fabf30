import { useState } from 'preact/hooks';
import guide from '../../../docs/ai-tools.md?raw';
import { allows, session } from '../api/session.ts';
import { CopiedLines } from '../components/credentials.tsx';
import { Card, PageHeader } from '../components/page.tsx';
import { basePath, Link } from '../router/router.tsx';
import { GrantsCard } from './grants-card.tsx';
import { KeysCard, type MadeKey } from './keys-card.tsx';
import { type Program, programsOf } from './programs.ts';
import './connect.css';

/** How programs for AI ask the history: a key, and the lines to paste. */
export function ConnectPage() {
  const [made, setMade] = useState<MadeKey>();
  const signedIn = session.value;
  if (signedIn === undefined) return null;
  const { tenant, keyScopes } = signedIn;
  const root = new URL(basePath, location.origin);
  const url = new URL(`../mcp/${tenant}`, root).href;
  const mayMakeKeys = keyScopes?.includes('changelog.changelog_read') === true;
  return (
    <div class="stack">
      <PageHeader
        title="Connect"
        lead="Ask the history from Claude Code, Cursor, Visual Studio Code or Codex: who changed what, when, from what to what."
      />
      {mayMakeKeys ? <KeysCard made={made} onMade={setMade} /> : <KeysOfOperators tenant={tenant} />}
      <GrantsCard />
      <Card body="connect-card" title={made === undefined ? 'The key' : 'Your new key'}>
        {made === undefined ? undefined : <p>It is shown only once: store it before you leave the page.</p>}
        <p>Set it in the shell in which you start the program. Visual Studio Code asks for the key instead.</p>
        <CopiedLines what="the line with the key" text={`export ANNALS_KEY=${made?.key ?? 'annals_…'}`} />
      </Card>
      {programsOf(guide, url).map((program) => (
        <ProgramCard key={program.name} program={program} />
      ))}
      <p class="muted">
        <a href={new URL('../docs/guides/ai-tools', root).href} target="_blank" rel="noreferrer">
          The guide on AI tools
        </a>{' '}
        tells what they can ask, and what keeps data from giving orders.
      </p>
    </div>
  );
}

function KeysOfOperators({ tenant }: { readonly tenant: string }) {
  const command = `annals key create --tenant ${tenant} --scope changelog.changelog_read --expires P90D --name NAME`;
  return (
    <Card body="connect-card" title="Keys">
      <p>
        A program needs a key. People who signed in with their company's account make their own here.{' '}
        {allows('access.credential_manage') ? (
          <>
            You make one under <Link to={{ path: 'security/keys' }}>Security</Link>, or an operator does:
          </>
        ) : (
          'For your session an operator makes one:'
        )}
      </p>
      <CopiedLines what="the command" text={command} />
    </Card>
  );
}

function ProgramCard({ program: { name, where, lines } }: { readonly program: Program }) {
  return (
    <Card body="connect-card" title={name}>
      <p>{where.split('`').map((words, place) => (place % 2 === 0 ? words : <code key={place}>{words}</code>))}:</p>
      <CopiedLines what={`the lines for ${name}`} text={lines} />
    </Card>
  );
}
