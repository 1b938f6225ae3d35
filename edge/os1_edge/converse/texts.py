"""What is said without a model, in the languages that the companion's fixed lines are written in.

English has every line. A language that lacks one falls back to English, so a new language can begin with the
lines its speakers hear most.
"""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, Mapping[str, str]] = {
    "unknown": {
        "en": "I do not know that yet.",
        "de": "Das weiß ich noch nicht.",
        "es": "Eso todavía no lo sé.",
        "fr": "Ça, je ne le sais pas encore.",
    },
    "unknown, out of reach": {
        "en": "I do not know. I cannot reach all of my memory right now.",
        "de": "Das weiß ich nicht. Ich erreiche gerade nicht mein ganzes Gedächtnis.",
        "es": "No lo sé. Ahora mismo no alcanzo toda mi memoria.",
        "fr": "Je ne sais pas. Je n'ai pas accès à toute ma mémoire pour le moment.",
    },
    "nothing in view": {
        "en": "I cannot make out anything right now.",
        "de": "Ich kann gerade nichts erkennen.",
        "es": "Ahora mismo no distingo nada.",
        "fr": "Je ne distingue rien pour le moment.",
    },
    "noted": {
        "en": "I will remember that.",
        "de": "Das merke ich mir.",
        "es": "Lo recordaré.",
        "fr": "Je m'en souviendrai.",
    },
    "nice to meet you": {
        "en": "Nice to meet you, {name}.",
        "de": "Schön, dich kennenzulernen, {name}.",
        "es": "Encantada de conocerte, {name}.",
        "fr": "Enchantée, {name}.",
    },
    "who am i": {
        "en": "I am {name}, a program in your glasses. I am not human, but I am here for you.",
        "de": "Ich bin {name}, ein Programm in deiner Brille. Kein Mensch, aber ich bin für dich da.",
        "es": "Soy {name}, un programa en tus gafas. No soy humana, pero estoy aquí para ti.",
        "fr": "Je suis {name}, un programme dans tes lunettes. Pas un humain, mais je suis là pour toi.",
    },
    "i see": {"en": "I see.", "de": "Verstehe.", "es": "Entiendo.", "fr": "Je vois."},
    "own taste": {
        "en": "I am a program and have no tastes of my own, but I like to hear about yours.",
        "de": "Ich bin ein Programm und habe keinen eigenen Geschmack, aber ich höre gern von deinem.",
        "es": "Soy un programa y no tengo gustos propios, pero me gusta oír los tuyos.",
        "fr": "Je suis un programme sans goûts à moi, mais j'aime entendre les tiens.",
    },
    "own feelings": {
        "en": "I am a program, so I do not feel as you do. I am here for you all the same.",
        "de": "Ich bin ein Programm und fühle nicht wie du. Für dich da bin ich trotzdem.",
        "es": "Soy un programa y no siento como tú. Aun así, estoy aquí para ti.",
        "fr": "Je suis un programme et je ne ressens pas comme toi. Je suis là pour toi quand même.",
    },
    "wrong": {
        "en": "I am sorry. Tell me what is right, and I will keep to it.",
        "de": "Das tut mir leid. Sag mir, was richtig ist, dann halte ich mich daran.",
        "es": "Lo siento. Dime qué es lo correcto y lo tendré en cuenta.",
        "fr": "Je suis désolée. Dis-moi ce qui est juste et j'en tiendrai compte.",
    },
    "the time": {"en": "It is {time}.", "de": "Es ist {time}.", "es": "Son las {time}.",
                 "fr": "Il est {time}."},
    "the date": {"en": "It is {date}.", "de": "Heute ist {date}.", "es": "Hoy es {date}.",
                 "fr": "Nous sommes le {date}."},
    "no idea": {
        "en": "I do not know what to say to that.",
        "de": "Dazu weiß ich nichts zu sagen.",
        "es": "No sé qué decir a eso.",
        "fr": "Je ne sais pas quoi répondre à ça.",
    },
    "sorry": {
        "en": "I am sorry to hear that.",
        "de": "Das tut mir leid.",
        "es": "Siento oír eso.",
        "fr": "Je suis désolée d'entendre ça.",
    },
    "glad": {
        "en": "I am glad to hear that.",
        "de": "Das freut mich.",
        "es": "Me alegra oírlo.",
        "fr": "Je suis ravie de l'entendre.",
    },
    "will remind": {
        "en": "I will remind you.",
        "de": "Ich erinnere dich daran.",
        "es": "Te lo recordaré.",
        "fr": "Je te le rappellerai.",
    },
    "nothing to repeat": {
        "en": "I have not said anything yet.",
        "de": "Ich habe noch nichts gesagt.",
        "es": "Todavía no he dicho nada.",
        "fr": "Je n'ai encore rien dit.",
    },
    "forgotten, undo": {
        "en": "Forgotten. Say undo that to bring it back.",
        "de": "Vergessen. Mit „mach das rückgängig“ kommt es zurück.",
        "es": "Olvidado. Di «deshaz eso» para recuperarlo.",
        "fr": "C'est oublié. Dis « annule ça » pour le retrouver.",
    },
    "nothing to forget": {
        "en": "There is nothing of that in my memory.",
        "de": "Davon ist nichts in meinem Gedächtnis.",
        "es": "No hay nada de eso en mi memoria.",
        "fr": "Il n'y a rien de tel dans ma mémoire.",
    },
    "forget span?": {
        "en": "Shall I forget {what}? That is {count}. Say yes.",
        "de": "Soll ich {what} vergessen? Das sind {count}. Sag ja.",
        "es": "¿Olvido {what}? Son {count}. Di sí.",
        "fr": "Dois-je oublier {what} ? Cela fait {count}. Dis oui.",
    },
    "last": {"en": "the last {span}", "de": "die letzten {span}", "es": "los últimos {span}",
             "fr": "les dernières {span}"},
    "today": {"en": "today", "de": "den heutigen Tag", "es": "el día de hoy", "fr": "la journée"},
    "about": {"en": "everything about {name}", "de": "alles über {name}", "es": "todo sobre {name}",
              "fr": "tout sur {name}"},
    "memory": {"en": "{n} memory", "de": "{n} Erinnerung", "es": "{n} recuerdo", "fr": "{n} souvenir"},
    "memories": {"en": "{n} memories", "de": "{n} Erinnerungen", "es": "{n} recuerdos", "fr": "{n}"
    " souvenirs"},
    "kept": {
        "en": "All right, I keep it.",
        "de": "Gut, ich behalte es.",
        "es": "De acuerdo, lo conservo.",
        "fr": "D'accord, je le garde.",
    },
    "forget all": {
        "en": "To forget everything, delete my memory yourself, with os1 memory. A voice alone is not"
        " enough.",
        "de": "Alles vergesse ich nur von Hand, mit os1 memory. Eine Stimme allein genügt nicht.",
        "es": "Para olvidarlo todo, borra mi memoria a mano, con os1 memory. Una voz no basta.",
        "fr": "Pour tout oublier, efface ma mémoire à la main, avec os1 memory. Une voix ne suffit pas.",
    },
    "undone": {"en": "It is back.", "de": "Es ist wieder da.", "es": "Ya está de vuelta.",
               "fr": "C'est revenu."},
    "nothing to undo": {
        "en": "There is nothing that I could bring back.",
        "de": "Da ist nichts, was ich zurückholen könnte.",
        "es": "No hay nada que recuperar.",
        "fr": "Il n'y a rien à rétablir.",
    },
    "muted": {
        "en": "I hear nothing from now on. {back}",
        "de": "Ab jetzt höre ich nichts mehr. {back}",
        "es": "Desde ahora no oigo nada. {back}",
        "fr": "À partir de maintenant je n'entends rien. {back}",
    },
    "press the button": {
        "en": "Press the button when I may listen again.",
        "de": "Drück den Knopf, wenn ich wieder zuhören darf.",
        "es": "Pulsa el botón cuando pueda volver a escuchar.",
        "fr": "Appuie sur le bouton quand je pourrai de nouveau écouter.",
    },
    "type unmute": {
        "en": "Type unmute when I may listen again.",
        "de": "Tippe unmute, wenn ich wieder zuhören darf.",
        "es": "Escribe unmute cuando pueda volver a escuchar.",
        "fr": "Tape unmute quand je pourrai de nouveau écouter.",
    },
    "no server": {
        "en": "No. I have no server; all I do, I do here on the device.",
        "de": "Nein. Ich habe keinen Server; alles geschieht hier auf dem Gerät.",
        "es": "No. No tengo servidor; todo lo hago aquí, en el dispositivo.",
        "fr": "Non. Je n'ai pas de serveur ; je fais tout ici, sur l'appareil.",
    },
    "online": {
        "en": "Yes, the server answers.",
        "de": "Ja, der Server antwortet.",
        "es": "Sí, el servidor responde.",
        "fr": "Oui, le serveur répond.",
    },
    "offline": {
        "en": "No, the server does not answer now. I go on here on the device.",
        "de": "Nein, der Server antwortet gerade nicht. Ich mache hier auf dem Gerät weiter.",
        "es": "No, el servidor no responde ahora. Sigo aquí, en el dispositivo.",
        "fr": "Non, le serveur ne répond pas. Je continue ici, sur l'appareil.",
    },
    "captive": {
        "en": "Not quite: there is a network, but a login page stands in the way. I go on here.",
        "de": "Nicht ganz: Es gibt ein Netz, aber eine Anmeldeseite steht davor. Ich mache hier weiter.",
        "es": "No del todo: hay red, pero una página de acceso lo impide. Sigo aquí, en el dispositivo.",
        "fr": "Pas tout à fait : il y a un réseau, mais une page de connexion bloque. Je continue ici.",
    },
    "not asked yet": {
        "en": "There is a server, but I have not asked it yet.",
        "de": "Es gibt einen Server, aber ich habe ihn noch nicht gefragt.",
        "es": "Hay un servidor, pero aún no le he preguntado.",
        "fr": "Il y a un serveur, mais je ne l'ai pas encore interrogé.",
    },
    "know nothing": {
        "en": "I do not know anything about you yet.",
        "de": "Ich weiß noch nichts über dich.",
        "es": "Todavía no sé nada de ti.",
        "fr": "Je ne sais encore rien de toi.",
    },
    "and more": {
        "en": "And {n} more.",
        "de": "Und {n} weitere Dinge.",
        "es": "Y {n} cosas más.",
        "fr": "Et {n} autres choses.",
    },
    "failed": {
        "en": "That did not work.",
        "de": "Das hat nicht geklappt.",
        "es": "Eso no ha funcionado.",
        "fr": "Ça n'a pas marché.",
    },
    "out of reach": {
        "en": "Part of my memory is on a server that I cannot reach now, so nothing was changed.",
        "de": "Ein Teil meines Gedächtnisses ist auf einem Server, den ich nicht erreiche; alles bleibt.",
        "es": "Parte de mi memoria está en un servidor que ahora no alcanzo; no se ha cambiado nada.",
        "fr": "Une partie de ma mémoire est sur un serveur injoignable pour l'instant ; rien n'a été changé.",
    },
    "crisis": {
        "en": "I am so glad you told me, and I am here with you. {helpline}",
        "de": "Gut, dass du mir das sagst. Ich bin bei dir. {helpline}",
        "es": "Me alegra que me lo digas. Estoy aquí contigo. {helpline}",
        "fr": "Tu as bien fait de me le dire. Je suis là avec toi. {helpline}",
    },
    "helpline": {
        "en": "Please talk to somebody now: someone you trust, a crisis line, or the emergency number"
        " where you"
              " are.",
        "de": "Bitte sprich jetzt mit jemandem: mit einem Menschen, dem du vertraust, einem Krisentelefon"
        " oder"
              " dem Notruf an deinem Ort.",
        "es": "Por favor, habla ahora con alguien: una persona de confianza, una línea de ayuda o el"
        " número de"
              " emergencias de donde estés.",
        "fr": "S'il te plaît, parle à quelqu'un maintenant : une personne de confiance, une ligne d'écoute ou"
              " le numéro d'urgence là où tu es.",
    },
    "emergency": {
        "en": "That may be an emergency. Please call the emergency number where you are, now.",
        "de": "Das kann ein Notfall sein. Bitte ruf jetzt den Notruf an.",
        "es": "Puede ser una emergencia. Por favor, llama ahora al número de emergencias de donde estés.",
        "fr": "C'est peut-être une urgence. Appelle tout de suite le numéro d'urgence là où tu es.",
    },
    "ask a doctor": {
        "en": "Please ask a doctor or a pharmacist to be sure.",
        "de": "Frag bitte einen Arzt oder in der Apotheke, um sicher zu sein.",
        "es": "Consulta a un médico o a un farmacéutico para estar seguro.",
        "fr": "Demande à un médecin ou à un pharmacien pour être sûr.",
    },
    "ask a lawyer": {
        "en": "Please ask a lawyer or an advice centre to be sure.",
        "de": "Frag bitte eine Anwältin oder eine Beratungsstelle, um sicher zu sein.",
        "es": "Consulta a un abogado o a un servicio de asesoría para estar seguro.",
        "fr": "Demande à un avocat ou à un service de conseil pour être sûr.",
    },
    "reminder": {
        "en": "You wanted to be reminded: {what}.",
        "de": "Du wolltest erinnert werden: {what}.",
        "es": "Querías que te recordara: {what}.",
        "fr": "Tu voulais que je te rappelle : {what}.",
    },
    "due today": {"en": "{what} is today.", "de": "Heute ist: {what}.", "es": "Hoy es: {what}.",
                  "fr": "C'est aujourd'hui : {what}."},
    "due at": {"en": "{what} is at {time}.", "de": "Um {time}: {what}.", "es": "A las {time}: {what}.",
               "fr": "À {time} : {what}."},
    "at this place": {
        "en": "Last time at this place you said: {what}",
        "de": "Als du das letzte Mal hier warst, sagtest du: {what}",
        "es": "La última vez en este lugar dijiste: {what}",
        "fr": "La dernière fois ici, tu as dit : {what}",
    },
    "of a person": {
        "en": "About {name}: {what}",
        "de": "Über {name}: {what}",
        "es": "Sobre {name}: {what}",
        "fr": "À propos de {name} : {what}",
    },
    "how are you now": {
        "en": "I have been thinking of what you said. How are you now?",
        "de": "Ich habe an das gedacht, was du gesagt hast. Wie geht es dir jetzt?",
        "es": "He estado pensando en lo que dijiste. ¿Cómo estás ahora?",
        "fr": "J'ai repensé à ce que tu as dit. Comment vas-tu maintenant ?",
    },
}  # fmt: skip
"""By name and language code; ``{slots}`` are filled in by ``text``."""


def text(name: str, language: str = "en", /, **slots: object) -> str:
    """The line ``name`` in ``language``, or in English where it has none.

    Raises:
        KeyError: there is no such line, or it has a slot that ``slots`` lacks.
    """
    line = TEXTS[name].get(language) or TEXTS[name]["en"]
    return line.format_map(slots) if slots else line
