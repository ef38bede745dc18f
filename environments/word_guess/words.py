"""The secret words: everyday English of four to six letters, by category."""

_WORDS = {
    "animal": """
        bear bird boar bull calf clam colt crab crow deer dove duck fawn fish foal frog goat gull hare hawk ibex kiwi lamb
        lark lion lynx mink mole moth mule newt oryx puma seal slug stag swan tick toad tuna vole wasp wolf worm wren
        adder bison camel cobra coyote crane eagle egret finch gecko goose guppy heron hippo horse hyena koala lemur llama
        louse moose mouse otter panda perch quail raven robin shark sheep shrew skunk sloth snail snake squid stork swine
        tapir tiger trout viper whale zebra
        alpaca badger beaver beetle bobcat canary cougar cuckoo donkey falcon ferret gibbon gopher hornet iguana jackal
        jaguar kitten lizard magpie marmot monkey osprey oyster parrot pigeon python rabbit salmon shrimp spider turkey
        turtle walrus weasel wombat
    """,
    "food": """
        beef bean beet bran cake chop corn date dill flan kale leek lime loaf meat mint oats okra pear peas plum pork
        rice roll sage salt soup stew taco tofu yolk
        apple bacon bagel basil berry bread broth candy chili cream crepe curry dough fudge gravy grape guava honey icing
        jelly lemon mango melon olive onion pasta peach pecan pizza prune salad salsa sauce scone spice steak sugar syrup
        toast torte wafer wheat yeast
        almond banana barley butter carrot cashew celery cereal cheese cherry cookie endive fennel garlic ginger
        hummus lentil muffin mutton nougat nutmeg orange papaya pepper pickle potato quiche radish raisin squash tomato
        turnip waffle walnut yogurt
    """,
    "thing around the house": """
        bath bowl cork desk dish door fork gate hook iron lamp lock mirror nail oven pipe plug rake roof sink sofa soap
        tile tray vase wall
        attic bench blind broom brush candle chair clock couch crate crib cloth fence floor frame glass hinge knife ladle
        latch linen mixer panel plate quilt ruler shelf spoon stair stool stove table towel
        basket bucket carpet closet cooker cradle drawer faucet fridge funnel garage hammer handle heater hanger kettle
        ladder locker napkin pantry pillow saucer screen shower socket teapot toilet window
    """,
    "thing in nature": """
        bark cave clay dawn dune dust fern foam fuel glen hail hill iris lake lava leaf lily mist moon moss palm peak pond
        rain reef rock root sand seed snow star stem tide tree vine wave weed wind wood
        acorn beach birch bloom brook cedar cliff cloud coast coral creek delta earth field fjord flame flood frost gorge
        grass grove heath hedge ivory larch lotus maple marsh ocean orbit petal pearl plain ridge river shore shrub slope
        spark steam stone storm swamp tulip
        bamboo branch breeze canyon clover cosmos crater desert flower forest galaxy geyser island jungle lagoon
        meadow meteor pebble planet puddle quartz ravine spring stream summit sunset timber tundra valley violet willow
        winter
    """,
    "trade or profession": """
        chef cook monk page poet guard
        actor agent baker boxer coach clerk diver judge maker mason mayor medic miner model nurse pilot scout smith tailor
        tutor usher valet
        artist author banker barber broker butler cowboy dancer doctor driver editor farmer jockey lawyer mentor pastor
        porter potter priest sailor singer teller trader umpire waiter warden weaver writer
    """,
    "": """
        able acid aunt back bade bail band bank barn base bell belt bike bill blue boat bold bolt bone book boot boss bulb
        bush cape card cart case cash cell chat chip city clip club coal coat coin cold cord cost crew crop cube cure cyst
        damp dark data deck deep dial dock doll dome draw drum duty edge exit face fact fair farm fast felt file film fire
        firm flag flat flow folk foot form fund gain game gear gift glad glow glue goal gold golf good grip grow half hall
        hand harp heat hero high hint hole holy home hope horn host hour huge hunt idea inch item jazz joke jump jury keen
        kept kick kind king kite knee knot lace lady land late lawn lean left lend life lift line link list load loan loop
        loud luck main mask mass math maze menu mile mind myth navy neat neck nest news nice noon norm note oath odds open
        pace pack pain pair park path pile pink plan play poem pole pool port pose pure quiz race rail rank rare read ring
        risk road robe rope rose ruby rude rule safe sail sale scar self ship shoe show side sign silk size skin slow soft
        sold song sour step suit swim tale talk tall tape task team text thin time tiny tool tour town trap trip true tube
        turn ugly unit vast verb vest view vote wage walk warm wash week well wide wild wing wire wise wish wrap yard year
        zero zone
        abbey adult alarm album alien angle anger ankle apron arena armor arrow atlas award badge basic beard bible
        black blade blame blank blast blaze blend bless block blood board boost booth bound brain brake brand brass brave
        brick bride brief bring broad brown build bunch cabin cable canal cargo carol catch cause chain chalk charm chart
        chase cheap check chess chest chief child choir civic claim class clean clear climb close comic cough court cover
        craft crash crazy crime cross crowd crown curve cycle daily dance debut depth diary doubt draft drama dream dress
        drift drink drive early eight elbow elite empty enemy enjoy entry equal essay event exact extra fable faith fancy
        feast fever fiber fifth fight final first flash fleet flour fluid focus force forum fresh front funny ghost giant
        given globe glory glove grade grain grand grant graph green greet grief group guess guest guide habit happy harsh
        heart heavy hobby hotel house human humor ideal image index inner issue jewel joint juice kayak knock label labor
        large laser laugh layer learn legal level light limit local logic loyal lucky lunch magic major march match medal
        mercy merit metal minor mixed money month motor mount mouth movie music naval nerve night noble noise north novel
        offer order organ ounce paint panic paper party patch pause peace pedal penny phase phone photo piano piece pitch
        place plane plant plaza point power press price pride prime print prize proof proud punch pupil purse queen quest
        quick quiet quota quote radio raise rally ranch range rapid ratio reach ready reply rhyme rifle right rival rough
        round route royal rugby rural saint scale scarf scene scent score scrap sense serve seven shade shape share sharp
        shell shift shine shirt shock short shout sight silly skate skill skirt sleep slice smart smile smoke solar
        solid sound south space speak speed spine split sport spray staff stage stain stake stamp start state stick still
        stock story strap straw strip study stuff style sweet swing sword taste teach tenth thank theme thick thief
        third throw thumb title token tooth topic torch total touch tough tower trace track trade trail train treat
        trend trial tribe trick truck truly trunk trust truth twist uncle under union unity upper urban usual value video
        visit vital vocal voice wagon waist watch water weigh wheel white whole width woman world worth wound wrist wrong
        yacht young youth
        absent accent action advice afraid agency amount anchor answer appeal arctic asleep attack aspect august autumn
        ballet ballot banner barrel battle beauty beyond bishop bitter border bottle bottom bounce bridge bright bronze
        budget bullet burden button camera campus cancel castle cattle center chance change charge choice chosen church
        circle client coffee column combat comedy common copper corner cotton couple course cousin credit crisis custom
        damage danger debate decade defeat degree demand depend design detail device dinner divide double dragon effort
        eleven empire energy engine escape export fabric factor family famous father figure finger finish follow formal
        fourth freeze friend frozen future gather gentle golden ground growth guitar harbor health height helmet hidden
        hunger impact income injury inside invest jacket junior kidney launch leader league legend length lesson letter
        likely liquid little lively luxury market master medium member memory method middle minute mobile modern moment
        mother motion museum narrow nation native nature nearby normal notice number object office option origin
        oxygen packet palace parade parent patrol people pencil period permit person phrase pocket poetry poison police
        policy polish prayer prince prison profit public puzzle rocket random rescue result reward rhythm ribbon ritual
        rubber sacred sample school season second secret senior series settle shadow signal silent silver simple single
        sister sketch smooth social source speech spirit spread square stable statue status steady street strike string
        strong studio sudden supply survey switch symbol system talent target temple tender tennis theory thirty thread
        throat throne ticket tissue tongue travel treaty trophy tunnel twelve unique vacuum vessel victim vision volume
        wealth weapon weekly wonder yellow
    """,
}

LENGTHS = (4, 5, 6)

CATEGORIES: dict[str, tuple[str, ...]] = {
    category: tuple(sorted(text.split())) for category, text in _WORDS.items() if category
}
"""Category -> its words."""

WORDS: tuple[str, ...] = tuple(sorted(word for text in _WORDS.values() for word in text.split()))
"""All words that can be a secret."""


def words_of(length: int, category: str | None = None) -> list[str]:
    """The words of one length, of one category or of all; sorted."""
    return [word for word in (CATEGORIES[category] if category else WORDS) if len(word) == length]
