import { useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { tellFailure } from './toasts.tsx';

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
