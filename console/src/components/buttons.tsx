import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon, type IconName } from './icon.tsx';
import { tellFailure } from './toasts.ts';

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'type'> {
  readonly kind?: 'plain' | 'primary' | 'quiet' | 'danger';
  readonly icon?: IconName | undefined;
  readonly type?: 'button' | 'submit';
  readonly children?: ComponentChildren;
}

/** A button. One without words needs an `aria-label`. */
export function Button({ kind = 'plain', icon, type = 'button', children, class: more, ...rest }: ButtonProps) {
  const name = `button ${kind}${children === undefined ? ' bare' : ''}${typeof more === 'string' ? ` ${more}` : ''}`;
  return (
    <button {...rest} type={type} class={name}>
      {icon === undefined ? undefined : <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Runs one piece of work at a time, and keeps its error. */
export function useWork(onDone?: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const act = async (work: () => unknown) => {
    setBusy(true);
    setFailure(undefined);
    try {
      if ((await work()) !== false) onDone?.();
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  return { isBusy, failure, forget: () => setFailure(undefined), act };
}

/** A button whose work takes a moment. An error becomes a message at the edge of the page. */
export function WorkButton({ run, ...button }: ButtonProps & { readonly run: () => Promise<unknown> }) {
  const { isBusy, act } = useWork();
  return <Button {...button} disabled={isBusy} onClick={() => void act(() => run().catch(tellFailure))} />;
}

interface SaveButtonProps {
  readonly label: string;
  /** Of the file. */
  readonly name: string;
  readonly text: () => Promise<string>;
  readonly onSaved?: () => void;
}

/** Saves a text as a file. */
export function SaveButton({ label, name, text, onSaved }: SaveButtonProps) {
  const save = async () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([await text()], { type: 'text/plain' }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
    onSaved?.();
  };
  return (
    <WorkButton icon="download" run={save}>
      {label}
    </WorkButton>
  );
}

/** Characters of each part of the name of a file. */
const maxPart = 60;

/**
 * The name of a file by what is in it. No shell takes it for more than a name.
 *
 * @example
 * fileNameOf(['order', 'ORD 1', '2026-03-04T10:11:12.000Z'], 'proof'); // order-ORD-1-2026-03-04T10-11-12.000Z.proof
 */
export function fileNameOf(parts: readonly string[], ending: string): string {
  const plain = parts.map((part) => [...part.replaceAll(/[^\p{L}\p{N}._]+/gu, '-')].slice(0, maxPart).join(''));
  return `${plain
    .join('-')
    .replaceAll(/-{2,}/g, '-')
    .replace(/^[-.]+/, '')}.${ending}`;
}

interface CopyButtonProps {
  readonly text: () => string;
  /** What is copied: `the address`. */
  readonly what: string;
  readonly label?: string;
}

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, what, label }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await write(text());
      setCopied(true);
      setTimeout(() => setCopied(false), 1_500);
    } catch (error) {
      tellFailure(error);
    }
  };
  return (
    <Button
      kind="quiet"
      icon={copied ? 'check' : 'copy'}
      aria-label={`${label ?? (copied ? 'Copied' : 'Copy')} ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      {label}
    </Button>
  );
}

/** The clipboard is missing on pages without TLS beyond loopback. There a selection is copied. */
async function write(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('The browser did not allow the console to copy.');
}
