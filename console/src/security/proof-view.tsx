import { ApiError, type HistoryLog } from '@annals/client';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { session } from '../api/session.ts';
import { CopyButton, SaveButton } from '../components/buttons.tsx';
import { counted, countText } from '../components/numbers.ts';
import { Card, PageHeader } from '../components/page.tsx';
import { Answer, EmptyState, LoadingLine } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';

/** How far the history is sealed, and what to take away to find out later whether it was altered. */
export function ProofView() {
  const state = useRequest('proof', (signal) => annals().proofs.state({ signal }));
  const { value, error } = state;
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <div class="stack">
      <PageHeader
        title="Proof"
        lead="With a checkpoint and the key you can verify later, without Annals, whether a change was altered or removed."
      >
        {value === undefined ? undefined : <TakeAway log={value} />}
      </PageHeader>
      <LoadingLine active={state.isLoading} />
      {isMissing ? (
        <EmptyState icon="clock" title="This history is not sealed yet">
          <p>{error.message}</p>
        </EmptyState>
      ) : (
        <Answer of={state}>{(log) => <Sealed log={log} />}</Answer>
      )}
    </div>
  );
}

function TakeAway({ log: { vkey, checkpoint, size } }: { readonly log: HistoryLog }) {
  const tenant = session.value?.tenant ?? '';
  return (
    <>
      <SaveButton label="Checkpoint" name={`${tenant}-${size}.checkpoint`} text={async () => checkpoint} />
      <SaveButton label="Verifier key" name={`${tenant}.vkey`} text={async () => `${vkey}\n`} />
      <CopyButton what="the verifier key" text={() => vkey} />
    </>
  );
}

function Sealed({ log }: { readonly log: HistoryLog }) {
  const { size, unsealed, signedAt, witnesses, lastCheck, receipts } = log;
  return (
    <>
      <section class="card" aria-label="Sealed">
        <h2 class="card-header">
          Sealed up to change {countText(size)}, {sinceText(Date.parse(signedAt), Date.now())}
        </h2>
        <div class="card-body stack">
          <p>
            {unsealed === 0
              ? 'Nothing waits for a checkpoint.'
              : `${counted(unsealed, 'change')} behind it ${unsealed === 1 ? 'waits' : 'wait'} for the next checkpoint.`}{' '}
            Keep the checkpoint and the key where those who run Annals cannot change them, and ask for a bundle when you
            come back.
          </p>
          <dl class="facts">
            <dt>Log</dt>
            <dd>
              <Name text={log.origin} />
            </dd>
            <dt>Witnesses</dt>
            <dd>
              {witnesses.length === 0
                ? 'No witness has cosigned this checkpoint.'
                : witnesses.map((witness) => (
                    <p key={witness.name}>
                      <Name text={witness.name} />, <Time at={witness.signedAt} />
                    </p>
                  ))}
            </dd>
            <dt>Last check</dt>
            <dd>
              {lastCheck === undefined ? (
                'Never: annals proof check verifies the history in the database.'
              ) : (
                <>
                  {lastCheck.right ? 'Nothing was wrong' : 'The history was not what was sealed'},{' '}
                  <Time at={lastCheck.at} />
                </>
              )}
            </dd>
          </dl>
        </div>
      </section>
      <Card title="Other operations on the history" aria-label="Receipts">
        {receipts.map((receipt) => (
          <p key={receipt.position}>
            <Time at={receipt.at} />: {receiptText(receipt)} <span class="muted">at position {receipt.position}</span>
          </p>
        ))}
      </Card>
    </>
  );
}

type Receipt = HistoryLog['receipts'][number];

const words: Readonly<Record<string, (changes: string) => string>> = {
  erasure: (changes) => `A person or a document was erased from ${changes}`,
  retention: (changes) => `Retention dropped ${changes}`,
  hold: () => 'The history was put on hold',
  release: () => 'The hold was released',
  'first sealing': (changes) => `The history was sealed for the first time, with ${changes} as they stood`,
  'new key': () => 'The log continues with a new key',
  restore: () => 'The database was restored, or the key is behind what it had signed: a new log continues from it',
};

/** What a receipt says, as a sentence without its end. */
function receiptText({ what, changes, reason }: Receipt): string {
  const text = words[what]?.(counted(changes, 'change')) ?? what;
  return reason === undefined ? text : `${text} (${reason})`;
}

const steps = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** How long ago a moment was, both in milliseconds: `2 minutes ago`. */
function sinceText(at: number, now: number): string {
  for (const [unit, length] of steps) {
    const count = Math.floor((now - at) / length);
    if (count > 0) return `${counted(count, unit)} ago`;
  }
  return 'less than a minute ago';
}
