import type { Completion } from '@annals/client';
import { useRef, useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { isAborted } from '../../api/failure.ts';
import { useRequest } from '../../api/use-request.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { FailureBox } from '../../components/failure-box.tsx';
import { Skeleton } from '../../components/loading.tsx';
import { LongText } from '../../components/long-text.tsx';
import { PageHeader } from '../../components/page-header.tsx';
import { Progress } from '../../components/progress.tsx';
import { QuotaBars } from '../../components/quota-bars.tsx';

type Role = 'SYSTEM' | 'USER' | 'ASSISTANT';

interface Message {
  readonly role: Role;
  readonly content: string;
}

const roles: readonly (readonly [Role, string])[] = [
  ['SYSTEM', 'System: instructions'],
  ['USER', 'User'],
  ['ASSISTANT', 'Assistant'],
];

const endings: Readonly<Record<NonNullable<Completion['finishReason']>, string | undefined>> = {
  stop: undefined,
  length: 'Cut off: the answer has reached the limit of tokens.',
  content_filter: 'The provider filtered the rest.',
  other: 'The provider ended the answer and did not say why.',
};

type Outcome =
  | { readonly state: 'waiting' }
  | { readonly state: 'answered'; readonly completion: Completion }
  | { readonly state: 'failed'; readonly error: unknown };

/** Tries a completion out, and shows what it takes from the quota. */
export function CompletionsView() {
  const [messages, setMessages] = useState<readonly Message[]>([
    { role: 'SYSTEM', content: 'You answer in one sentence.' },
    { role: 'USER', content: '' },
  ]);
  const [outcome, setOutcome] = useState<Outcome>();
  const usage = useRequest('usage', (signal) => annals().completions.usage({ signal }));
  const running = useRef<AbortController>(undefined);

  const run = async (event: SubmitEvent) => {
    event.preventDefault();
    const controller = new AbortController();
    running.current = controller;
    setOutcome({ state: 'waiting' });
    try {
      // Its idempotency key lets the service finish a call that nobody waits for.
      const completion = await annals().completions.create(
        { messages: messages.filter(({ content }) => content !== '') },
        { signal: controller.signal, maxRetries: 0 },
      );
      setOutcome({ state: 'answered', completion });
    } catch (error) {
      setOutcome(isAborted(error) ? undefined : { state: 'failed', error });
    }
    usage.reload();
  };
  const isWaiting = outcome?.state === 'waiting';
  return (
    <>
      <PageHeader title="Completions" lead="Try a completion. It counts like one of your application." />
      <div class="desk-columns">
        <form class="card" onSubmit={(event) => void run(event)}>
          <h2 class="card-header">Messages</h2>
          <div class="card-body form-grid">
            <Messages messages={messages} onChange={setMessages} />
            <div class="page-actions">
              <Button icon="plus" onClick={() => setMessages([...messages, { role: 'USER', content: '' }])}>
                Add a message
              </Button>
              {isWaiting ? (
                <Button icon="stop" onClick={() => running.current?.abort()}>
                  Stop waiting
                </Button>
              ) : (
                <Button
                  kind="primary"
                  icon="send"
                  type="submit"
                  disabled={messages.every(({ content }) => content.trim() === '')}
                >
                  Complete
                </Button>
              )}
            </div>
          </div>
        </form>
        <div class="stack">
          <section class="card">
            <h2 class="card-header">Quota of the shared token</h2>
            <div class="card-body">
              {usage.error === undefined ? undefined : <FailureBox error={usage.error} onRetry={usage.reload} />}
              {usage.value === undefined ? <Skeleton lines={4} /> : <QuotaBars usage={usage.value} />}
            </div>
          </section>
          <section class="card" aria-live="polite">
            <h2 class="card-header">Result</h2>
            <div class="card-body">
              <Result outcome={outcome} />
            </div>
          </section>
        </div>
      </div>
    </>
  );
}

function Messages({
  messages,
  onChange,
}: {
  messages: readonly Message[];
  onChange: (messages: readonly Message[]) => void;
}) {
  const change = (index: number, part: Partial<Message>) =>
    onChange(messages.map((message, place) => (place === index ? { ...message, ...part } : message)));
  return (
    <>
      {messages.map(({ role, content }, index) => (
        <div key={index} class="completion-message">
          <div class="completion-role">
            <select
              class="control"
              aria-label={`Role of message ${index + 1}`}
              value={role}
              onChange={(event) => change(index, { role: event.currentTarget.value as Role })}
            >
              {roles.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
            <Button
              kind="quiet"
              icon="close"
              aria-label={`Remove message ${index + 1}`}
              disabled={messages.length === 1}
              onClick={() => onChange(messages.filter((_, place) => place !== index))}
            />
          </div>
          <textarea
            class="control"
            rows={3}
            dir="auto"
            aria-label={`Message ${index + 1}`}
            value={content}
            onInput={(event) => change(index, { content: event.currentTarget.value })}
          />
        </div>
      ))}
    </>
  );
}

function Result({ outcome }: { readonly outcome: Outcome | undefined }) {
  if (outcome === undefined) return <p class="muted">Write a message and choose “Complete”.</p>;
  if (outcome.state === 'waiting') return <Progress share={undefined} label="Waiting for the provider" />;
  if (outcome.state === 'failed') return <FailureBox error={outcome.error} />;
  const { result = '', finishReason } = outcome.completion;
  const ending = finishReason === undefined ? undefined : endings[finishReason];
  return (
    <div class="stack">
      <LongText text={result} />
      {ending === undefined ? undefined : <p class="note">{ending}</p>}
      <div>
        <CopyButton text={() => result} what="the result" label="Copy" />
      </div>
    </div>
  );
}
