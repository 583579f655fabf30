import { Button } from '../components/button.tsx';
import { tellFailure } from '../components/toasts.tsx';

interface SaveButtonProps {
  readonly label: string;
  /** Of the file. */
  readonly name: string;
  readonly text: () => Promise<string>;
}

/** Saves a text as a file. Where there is none, it says why. */
export function SaveButton({ label, name, text }: SaveButtonProps) {
  const save = async () => {
    try {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([await text()], { type: 'text/plain' }));
      link.download = name;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      tellFailure(error);
    }
  };
  return (
    <Button icon="download" onClick={() => void save()}>
      {label}
    </Button>
  );
}
