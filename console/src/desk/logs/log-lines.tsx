import type { RequestLog } from '@annals/client';
import { Name } from '../../components/name.tsx';
import { Time } from '../../components/time.tsx';
import { SeverityBadge } from './severity-badge.tsx';

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
