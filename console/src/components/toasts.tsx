import { signal } from '@preact/signals';
import { failureOf } from '../api/failure.ts';
import { Button } from './buttons.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

/** Milliseconds that a message of success stays. Errors stay until they are closed. */
const duration = 5_000;

const toasts = signal<readonly Toast[]>([]);
let made = 0;

/** Tells something at the edge of the page. */
export function tell(text: string): void {
  const id = add(text, false);
  setTimeout(() => close(id), duration);
}

/** Tells an error of something that the reader asked for. */
export function tellFailure(error: unknown): void {
  const { title, details, requestId } = failureOf(error);
  add([title, ...details, ...(requestId === undefined ? [] : [`Request ${requestId}`])].join(' '), true);
}

function add(text: string, isError: boolean): number {
  made += 1;
  toasts.value = [...toasts.value.slice(-3), { id: made, text, isError }];
  return made;
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isError }) => (
        <div key={id} class={`toast${isError ? ' error' : ''}`}>
          <span>{text}</span>
          <Button kind="quiet" icon="close" aria-label="Close the message" onClick={() => close(id)} />
        </div>
      ))}
    </div>
  );
}
