import { failureOf } from '../api/failure.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

interface FailureBoxProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** An error of the service in words, with its request id. */
export function FailureBox({ error, onRetry }: FailureBoxProps) {
  const { title, details, requestId, mayPass, download } = failureOf(error);
  return (
    <div class="failure" role="alert">
      <Icon name="warning" size={18} />
      <div>
        <p class="failure-title">{title}</p>
        {details.map((detail) => (
          <p key={detail}>{detail}</p>
        ))}
        {requestId === undefined ? undefined : (
          <p class="request-id">
            Request <code>{requestId}</code>
          </p>
        )}
        {download === undefined ? undefined : (
          <a class="button" href={download} download="annals.json">
            <Icon name="download" />
            Download
          </a>
        )}
        {onRetry === undefined || !mayPass ? undefined : <Button onClick={onRetry}>Try again</Button>}
      </div>
    </div>
  );
}
