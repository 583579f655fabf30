import { ApiError, type HistoryLog } from '@annals/client';
import { annals } from '../api/annals.ts';
import { session } from '../api/session.ts';
import { useRequest } from '../api/use-request.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { LoadingLine, Skeleton } from '../components/loading.tsx';
import { Name } from '../components/name.tsx';
import { counted, countText } from '../components/numbers.ts';
import { PageHeader } from '../components/page-header.tsx';
import { Time } from '../components/time.tsx';
import { SaveButton } from './save-button.tsx';
import { receiptText, sinceText } from './words.ts';

/** How far the history is sealed, and what to take away to find out later whether it was altered. */
export function ProofView() {
  const { value, error, isLoading, reload } = useRequest('proof', (signal) => annals().proofs.state({ signal }));
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <div class="stack">
      <PageHeader
        title="Proof"
        lead="Whoever keeps a checkpoint and the key finds out later, without Annals, whether a change was altered or removed."
      >
        {value === undefined ? undefined : <TakeAway log={value} />}
      </PageHeader>
      <LoadingLine active={isLoading} />
      {isMissing ? (
        <EmptyState icon="clock" title="This history is not sealed yet">
          <p>{error.message}</p>
        </EmptyState>
      ) : error === undefined ? undefined : (
        <FailureBox error={error} onRetry={reload} />
      )}
      {value === undefined ? error === undefined ? <Skeleton /> : undefined : <Sealed log={value} />}
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
                ? 'Nobody has cosigned this checkpoint.'
                : witnesses.map((one) => (
                    <p key={one.name}>
                      <Name text={one.name} />, <Time at={one.signedAt} />
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
      <section class="card" aria-label="Receipts">
        <h2 class="card-header">What was done with the history besides recording it</h2>
        <div class="card-body">
          {receipts.map((receipt) => (
            <p key={receipt.position}>
              <Time at={receipt.at} />: {receiptText(receipt)} <span class="muted">at position {receipt.position}</span>
            </p>
          ))}
        </div>
      </section>
    </>
  );
}
