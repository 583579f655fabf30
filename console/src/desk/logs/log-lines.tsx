import type { RequestLog } from '@annals/client';
import { Badge } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { Time } from '../../components/values.tsx';

/** What the service noted about a request, line by line. */
export function LogLines({ messages }: { readonly messages: RequestLog['messages'] }) {
  if (messages.length === 0) return <p class="muted">Nothing was noted.</p>;
  return (
    <ol class="log-lines">
      {messages.map(({ timestamp, severity, message }, index) => (
        <li key={index}>
          <span class="muted">
            <Time at={timestamp} detail="clock" />
          </span>
          {severity === 'INFO' ? undefined : <SeverityBadge severity={severity} />}
          <Name text={message} />
        </li>
      ))}
    </ol>
  );
}

type Severity = 'INFO' | 'WARNING' | 'ERROR';

const looks = {
  INFO: { tone: 'good', word: 'fine' },
  WARNING: { tone: 'warn', word: 'warning' },
  ERROR: { tone: 'bad', word: 'failed' },
} as const;

export function SeverityBadge({ severity }: { readonly severity: Severity }) {
  const { tone, word } = looks[severity];
  return <Badge tone={tone}>{word}</Badge>;
}

/** The lines of a request's log that belong beside its answer: calls of tools, and failures. */
export function TurnLog({ log }: { readonly log: RequestLog }) {
  const lines = log.messages.filter(({ severity, guarded }) => severity !== 'INFO' || guarded === true);
  return lines.length === 0 ? null : <LogLines messages={lines} />;
}
