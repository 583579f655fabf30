import type { StreamedCompletion } from '@annals/client';
import { useRef, useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { isAborted } from '../../api/failure.ts';
import { useRequest } from '../../api/requests.ts';
import { Button, CopyButton } from '../../components/buttons.tsx';
import { Select } from '../../components/forms.tsx';
import { countText } from '../../components/numbers.ts';
import { Card, PageHeader } from '../../components/page.tsx';
import { QuotaBars } from '../../components/quota-bars.tsx';
import { FailureBox, Progress, Skeleton } from '../../components/states.tsx';
import { LongText } from '../../components/text.tsx';

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

const endings: Readonly<Record<NonNullable<StreamedCompletion['finishReason']>, string | undefined>> = {
  stop: undefined,
  length: 'Cut off: the answer has reached the limit of tokens.',
  content_filter: 'The provider filtered the rest.',
  other: 'The provider ended the answer and did not say why.',
};

type Outcome =
  | { readonly state: 'writing'; readonly text: string }
  | { readonly state: 'answered'; readonly text: string; readonly completion?: StreamedCompletion }
  | { readonly state: 'failed'; readonly text: string; readonly error: unknown };

/** A playground: the answer to messages as it is written, what it took, and what is left of the quota. */
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
    let text = '';
    setOutcome({ state: 'writing', text });
    try {
      const stream = annals().completions.stream(
        { messages: messages.filter(({ content }) => content !== '') },
        { signal: controller.signal, maxRetries: 0 },
      );
      for await (const part of stream) {
        text += part;
        setOutcome({ state: 'writing', text });
      }
      setOutcome({ state: 'answered', text, completion: await stream.answer() });
    } catch (error) {
      setOutcome(isAborted(error) ? { state: 'answered', text } : { state: 'failed', text, error });
    }
    usage.reload();
  };
  const isWriting = outcome?.state === 'writing';
  return (
    <>
      <PageHeader title="Playground" lead="Try a completion. It counts like one of your application." />
      <div class="desk-columns">
        <form class="card" onSubmit={(event) => void run(event)}>
          <h2 class="card-header">Messages</h2>
          <div class="card-body form-grid">
            <Messages messages={messages} onChange={setMessages} />
            <div class="page-actions">
              <Button icon="plus" onClick={() => setMessages([...messages, { role: 'USER', content: '' }])}>
                Add a message
              </Button>
              {isWriting ? (
                <Button icon="stop" onClick={() => running.current?.abort()}>
                  Stop
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
          <Card title="Quota of the shared token">
            <FailureBox error={usage.error} onRetry={usage.reload} />
            {usage.value === undefined ? <Skeleton lines={4} /> : <QuotaBars usage={usage.value} />}
          </Card>
          <Card title="Result" aria-live="polite">
            <Result outcome={outcome} />
          </Card>
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
        <div key={index} class="stack-small">
          <div class="completion-role">
            <Select
              class="control"
              aria-label={`Role of message ${index + 1}`}
              value={role}
              choices={roles}
              onChoose={(chosen) => change(index, { role: chosen })}
            />
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
  const { state, text } = outcome;
  if (state === 'writing' && text === '') return <Progress share={undefined} label="Waiting for the provider" />;
  return (
    <div class="stack">
      {text === '' ? undefined : <LongText text={text} />}
      {state === 'writing' ? <div class="turn-writing" /> : undefined}
      {state === 'failed' ? <FailureBox error={outcome.error} /> : undefined}
      {state === 'answered' ? <Ended text={text} completion={outcome.completion} /> : undefined}
    </div>
  );
}

function Ended({ text, completion }: { text: string; completion: StreamedCompletion | undefined }) {
  if (completion === undefined) return <p class="note">Stopped.</p>;
  const { finishReason, usage } = completion;
  const ending = finishReason === undefined ? undefined : endings[finishReason];
  return (
    <>
      {ending === undefined ? undefined : <p class="note">{ending}</p>}
      <div class="page-actions">
        <span class="muted number">
          {tokensText(usage?.inputTokens)} tokens in, {tokensText(usage?.outputTokens)} out
        </span>
        <CopyButton text={() => text} what="the result" label="Copy" />
      </div>
    </>
  );
}

function tokensText(tokens: number | undefined): string {
  return tokens === undefined ? 'unknown' : countText(tokens);
}
