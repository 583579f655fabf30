import type { DeliveryAttempt, SentRequest, Subscription } from '@annals/client';
import { annals } from '../api/annals.ts';
import { useReloads, useRequest } from '../api/requests.ts';
import { readsHistory } from '../api/session.ts';
import { LinesView } from '../components/lines-view.tsx';
import { countText } from '../components/numbers.ts';
import { Dialog, DialogButton } from '../components/overlays.tsx';
import { Fact } from '../components/page.tsx';
import { Answer } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { FilterChips, ListCard, useList } from '../lists/list-page.tsx';
import { OutcomeBadge } from './subscription-state.tsx';
import { type TargetType, targetOf } from './target-fields.ts';

const none = <span class="muted">none</span>;

/** The attempts of the last 7 days, and what the target answered. */
export function AttemptsList({ subscription }: { readonly subscription: Subscription }) {
  const { id } = subscription;
  const { type } = targetOf(subscription);
  const list = useList({
    name: `attempts ${id}`,
    pageSize: 20,
    defaultSort: '_id:DESC',
    read: (parameters, signal) => annals().subscriptions.attempts(id, parameters, { signal }),
  });
  useReloads({ isLoading: list.page.isLoading, reload: list.reload });
  return (
    <section class="stack" aria-label="Attempts">
      <div class="subscription-notes">
        <h2>Attempts</h2>
        <FilterChips
          list={list}
          chips={[
            ['Failed', 'outcome:(failed, refused, suspended)'],
            ['Tests', 'kind:test'],
          ]}
        />
      </div>
      <ListCard
        list={list}
        noun="attempt"
        empty={{
          icon: 'send',
          title: 'Nothing was sent in the last 7 days',
          text: 'Choose Test to send a sample that is marked as one.',
        }}
        class="wraps"
        keyOf={(attempt) => attempt.id ?? ''}
        columns={[
          { label: 'Time', class: 'nowrap', cell: ({ at = '' }) => <Time at={at} /> },
          { label: 'Outcome', cell: ({ outcome = 'failed' }) => <OutcomeBadge outcome={outcome} /> },
          { label: 'Position', class: 'number nowrap', cell: positionOf },
          { label: 'Status', name: 'status', class: 'number', cell: ({ status }) => status ?? none },
          { label: 'Took', name: 'took', class: 'number nowrap', cell: tookOf },
          { label: 'Reason', name: 'reason', cell: (attempt) => reasonOf(attempt, type)?.why },
          {
            label: 'Actions',
            class: 'nowrap',
            cell: (attempt) => (
              <DialogButton
                kind="quiet"
                aria-label={`Details of attempt ${attempt.id}`}
                dialog={(close) => <AttemptDialog subscription={subscription} attempt={attempt} onClose={close} />}
              >
                Details
              </DialogButton>
            ),
          },
        ]}
      />
    </section>
  );
}

interface AttemptDialogProps {
  readonly subscription: Subscription;
  readonly attempt: DeliveryAttempt;
  readonly onClose: () => void;
}

/** One attempt: what was sent, what the target answered, and what to do. */
function AttemptDialog({ subscription, attempt, onClose }: AttemptDialogProps) {
  const { id = '', at = '', kind, first, outcome = 'failed' } = attempt;
  const { type } = targetOf(subscription);
  const isShown = type === 'webhook' && readsHistory();
  const request = useRequest(isShown ? `request ${subscription.id} ${id}` : undefined, (signal) =>
    annals().subscriptions.sentRequest(subscription.id, id, { signal }),
  );
  return (
    <Dialog title={`Attempt ${id}`} onClose={onClose}>
      <dl class="facts">
        <Fact label="Time">
          <Time at={at} />
        </Fact>
        <Fact label="Position" class="number">
          {kind === 'test' ? 'none: a sample' : first === undefined ? undefined : positionOf(attempt)}
        </Fact>
        <ResultFacts type={type} result={{ ...attempt, outcome }} />
      </dl>
      {isShown ? (
        <Answer of={request} lines={4}>
          {(sent) => (
            <SentRequestView
              sent={sent}
              note={
                kind === 'test'
                  ? 'The sample, as it is sent today.'
                  : 'Annals does not store what it sends. This is rebuilt from the history, with the masks, erasures and settings of today.'
              }
            />
          )}
        </Answer>
      ) : undefined}
    </Dialog>
  );
}

/** The result of an attempt or of a test. */
export function ResultFacts({ type, result }: { readonly type: TargetType; readonly result: Result }) {
  const { outcome, status, answer } = result;
  const reason = reasonOf(result, type);
  const advice = result.kind === 'test' ? reason?.advice?.replace(again, '') : reason?.advice;
  const isPrivate = type !== 'email' && status !== undefined && answer === undefined;
  return (
    <>
      <Fact label="Outcome">
        <OutcomeBadge outcome={outcome} />
      </Fact>
      <Fact label="Status" class="number">
        {status ?? 'none'}
      </Fact>
      <Fact label="Took" class="number">
        {tookOf(result)}
      </Fact>
      <Fact label="Reason">{reason === undefined ? undefined : <Name text={reason.why} />}</Fact>
      <Fact label="What to do">{advice}</Fact>
      <Fact label="Answer">
        {isPrivate ? (
          'Not kept: the target is in a private network, so Annals keeps the status alone.'
        ) : answer === undefined ? undefined : answer === '' ? (
          'empty'
        ) : (
          <Name as="code" text={answer} />
        )}
      </Fact>
    </>
  );
}

/** A request without secrets. */
export function SentRequestView({ sent: { method, url, headers, body }, note }: { sent: SentRequest; note: string }) {
  const lines = [`${method} ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body];
  return (
    <section class="stack-small" aria-label="What was sent">
      <h3>What was sent</h3>
      <p class="muted">{note}</p>
      <LinesView text={lines.join('\n')} label="The request" maxLength={200} />
    </section>
  );
}

/** A test is sent once. */
const again = / ?Annals tries again\.$/;

const closedBy = 'Look into the log of the target: it took the request and failed.';

/** Why there was no answer, and what to do. */
const reasons: Readonly<Record<NonNullable<Result['reason']>, readonly [string, string]>> = {
  no_connection: [
    'The address is refused or cannot be reached.',
    'Check the name, the port and the firewall. Private addresses have to be allowed by the operator (ANNALS_DELIVERY_ALLOW).',
  ],
  tls: [
    'No secure connection (TLS) could be made.',
    'Check that the certificate is valid for this name, not expired, and sent with its intermediate certificates.',
  ],
  timeout: [
    'The target did not answer in time.',
    'Answer within 30 s: store the change first and process it afterwards.',
  ],
  closed: ['The target closed the connection without an answer.', closedBy],
  upgrade: ['The target switched protocols instead of answering.', 'Correct the address: it has to answer a POST.'],
};

/** What a status says, and what to do: the first that fits. */
const statuses: readonly (readonly [from: number, to: number, advice: string])[] = [
  [300, 399, 'Write the final address into the subscription: redirects are not followed.'],
  [401, 403, 'The target does not accept the credentials. Enter its headers again, or check the signature there.'],
  [404, 404, 'Correct the address.'],
  [410, 410, 'The target is gone for good, so the subscription is suspended. Correct the target, then resume.'],
  [413, 413, 'The request is too large for the target. Raise its limit, or narrow the query.'],
  [429, 429, 'The target is overloaded. Annals slows down by itself.'],
  [400, 499, 'The target does not accept the request. Its answer or its log says why.'],
  [500, 599, 'The target failed. Look into its log. Annals tries again.'],
];

interface Result extends Pick<DeliveryAttempt, 'kind' | 'status' | 'duration' | 'reason' | 'error' | 'answer'> {
  readonly outcome: NonNullable<DeliveryAttempt['outcome']>;
}

/** Why an attempt failed, in words, and what to do; undefined if it did not. */
function reasonOf({ outcome, status, reason, error = '' }: Partial<Result>, type: TargetType) {
  if (outcome === 'delivered') return undefined;
  if (reason !== undefined) return { why: reasons[reason][0], advice: reasons[reason][1] };
  if (type === 'email') {
    return { why: error, advice: (status ?? 0) >= 500 ? 'Correct the address, or remove it.' : 'Annals tries again.' };
  }
  const found = statuses.find(([from, to]) => status !== undefined && status >= from && status <= to);
  return { why: error, advice: found?.[2] };
}

function tookOf({ duration }: Partial<Result>): string {
  return duration === undefined ? 'unknown' : `${countText(duration)} ms`;
}

/** Where the changes stand in the history. */
function positionOf({ kind, first, last }: DeliveryAttempt): string {
  const which =
    first === undefined ? '' : first === last ? countText(first) : `${countText(first)} – ${countText(last ?? first)}`;
  return kind === 'live' ? which : `${kind} ${which}`.trim();
}
